/** Work that must still be done, synchronously, when the process exits. */
const pending = new Set<() => void>()
let listening = false

/** Runs `work` when the process exits normally. Returns a function that cancels it. */
export function atExit(work: () => void): () => void {
  if (!listening) process.on('exit', () => pending.forEach((each) => each()))
  listening = true
  pending.add(work)
  return () => pending.delete(work)
}
