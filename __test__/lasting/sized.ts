/** The sizes of the tests that last: short in every run, a soak, and the full figure. */

/** One of three sizes: the usual one, that of `npm run test:soak`, that of `npm run test:long`. */
export function sized(usual: number, soak: number, long: number): number {
  if (process.env['CONTEXT_LONG'] === '1') return long
  return process.env['CONTEXT_SOAK'] === '1' ? soak : usual
}

/** Tells a figure past the capture of a test's output. */
export function say(figure: string): void {
  process.stderr.write(`${figure}\n`)
}

/** Milliseconds that nothing here takes, however loaded the machine is. */
export const GENEROUS = 3_600_000

/** The loader of the addon, for processes that know nothing of TypeScript. */
export const NATIVE = new URL('../../dist/index.js', import.meta.url).href
