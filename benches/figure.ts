/** Shared by every bench in TypeScript: one line of JSON for each figure, as run.mjs reads it. */

/** A measure and what it stands beside, in the same unit. */
export interface Figure {
  /** The number of the ratio in the table, or a name. */
  figure: string
  what: string
  ours: number
  /** The limit or the peer. */
  peer: string
  beside: number
  unit: string
  /** The ratio that counts as good; absent if there is none. */
  good?: number
  /** The ratio near the limit. */
  stretch?: number
  /** Further observations. */
  note?: string
}

/** True if the bench shows only that it runs (`--once`): then one round of a short session will do. */
export function isOnce(): boolean {
  return process.argv.includes('--once')
}

/** Number of times that a part is repeated: as given, or once with `--once`. */
export function rounds(count: number): number {
  return isOnce() ? 1 : count
}

/** Prints a figure. */
export function print(figure: Figure): void {
  console.log(JSON.stringify({ ...figure, ratio: figure.ours / figure.beside }))
}

/** Says why a figure is missing. */
export function notRun(why: string): void {
  console.error(`not run: ${why}`)
}

/** The value below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** The median without the first ones, while something is still being made. One round alone counts. */
export function settled(times: readonly number[], first: number): number {
  return median(times.slice(Math.min(first, times.length - 1)))
}

/** Milliseconds that something takes. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Text that looks like code and is another one for each number. */
export function text(bytes: number, number: number): string {
  let state = number + 1
  const parts: string[] = []
  for (let length = 0; length < bytes;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const part = `value_${(state >>> 8) % 5000}${state % 7 === 0 ? '\n  ' : ' '}`
    parts.push(part)
    length += part.length
  }
  return parts.join('').slice(0, bytes)
}
