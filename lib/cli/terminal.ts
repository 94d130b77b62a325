/** What the program says: results on standard output, everything else on standard error. */

/** A failure whose message is for the user as it is. */
export class UsageError extends Error {}

/** Writes a line of the result. */
export function out(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Tells the user something that is no result. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** A bar on the last line of a terminal; nothing where standard error is none. */
export class Progress {
  readonly #total: number
  readonly #live = process.stderr.isTTY === true
  #drawn = 0

  /** `total` is the number of steps. */
  constructor(total: number) {
    this.#total = total
  }

  /** Shows `done` steps, with fractions, and what is being worked on. */
  show(done: number, text: string): void {
    const now = Date.now()
    if (!this.#live || now - this.#drawn < 80) return
    this.#drawn = now
    const width = 24
    const full = Math.min(width, Math.floor((width * done) / Math.max(1, this.#total)))
    const room = Math.max(10, (process.stderr.columns ?? 80) - width - 16)
    const shown = text.length > room ? `…${text.slice(1 - room)}` : text
    process.stderr.write(
      `\r\x1b[K[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${Math.floor(done)}/${this.#total} ${shown}`,
    )
  }

  /** Takes the bar away, so that other lines may follow. */
  clear(): void {
    if (this.#live && this.#drawn > 0) process.stderr.write('\r\x1b[K')
  }
}

/** A number of an option, within bounds. Throws a {@link UsageError}. */
export function numberOf(
  name: string,
  text: string | undefined,
  fallback: number,
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < min || value > max) {
    throw new UsageError(`--${name} takes a number from ${min} to ${max}, not "${text}"`)
  }
  return value
}
