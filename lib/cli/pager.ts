/** Output that may be long: through a pager in a terminal, plain in a pipe. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ignoreInterrupts } from './signals.ts'
import { plain, shown, showsColours, showsLinks } from '../ui/index.ts'

/** Writes lines that are safe for a terminal: plain, painted or escaped. Resolves when more can be written. */
export type Write = (line: string) => Promise<void>

/** Makes one line of any text safe for a terminal, and gives it a colour; none in a pipe. */
export interface Paint {
  id(text: string): string
  /** A path, as a link to `url` on terminals that have links. */
  path(text: string, url?: string): string
  dim(text: string): string
  added(text: string): string
  removed(text: string): string
}

/** The pager where `$PAGER` is not set. Small systems have no `less`. */
const DEFAULT = process.platform === 'win32' ? 'more' : 'if command -v less >/dev/null; then exec less; else exec cat; fi'

/** A shell's exit codes for a command that it can't run or find. */
const NO_PAGER = new Set<number | null>([126, 127])

/**
 * Runs the work with a place to write to: `$PAGER` (else `less`) if standard output is a terminal. Ends quietly if the
 * reader stops reading. If the pager does not exist, the work runs again without one.
 */
export async function paged(work: (write: Write, paint: Paint) => Promise<void>): Promise<void> {
  const paint = paints(showsColours(process.stdout), showsLinks(process.stdout))
  const pager = process.stdout.isTTY === true ? (process.env['PAGER'] ?? DEFAULT).trim() : ''
  if (pager === '' || pager === 'cat') return work(writer(process.stdout), paint)
  // As git starts it: quit if it fits on a screen, show colours, leave the text on the screen.
  const env = { ...process.env, LESS: process.env['LESS'] ?? 'FRX' }
  const child = spawn(pager, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve).on('error', () => resolve(127)))
  let isRead = true
  const stops = (): void => void (isRead = false)
  child.stdin.on('error', stops)
  const write = writer(child.stdin)
  // Ctrl-C is for the pager, which stops its current work and continues.
  const released = ignoreInterrupts()
  await work(async (line) => {
    if (isRead) await Promise.race([write(line).catch(stops), ended])
  }, paint)
  child.stdin.end()
  const code = await ended
  released()
  if (NO_PAGER.has(code)) await work(writer(process.stdout), paint)
}

/** Writes a whole text: byte for byte into a pipe; safe for a terminal, and there with a line about it. */
export async function shownWhole(text: string, about?: string): Promise<void> {
  if (process.stdout.isTTY === true) {
    const safe = text.replace(/\n$/, '').split('\t').map(shown).join('\t')
    return paged(async (write, paint) => {
      if (about !== undefined) await write(paint.dim(about))
      await write(safe)
    })
  }
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

function writer(stream: NodeJS.WritableStream): Write {
  return async (lines) => {
    if (!stream.write(`${lines}\n`)) await once(stream, 'drain')
  }
}

function paints(isColoured: boolean, isLinked: boolean): Paint {
  const colour = (code: number) => (text: string) => {
    const line = text.split('\t').map(plain).join('\t')
    return isColoured ? `\x1b[${code}m${line}\x1b[m` : line
  }
  const path = (text: string, url?: string): string => {
    const shown = colour(36)(text)
    return isLinked && url !== undefined ? `\x1b]8;;${url}\x1b\\${shown}\x1b]8;;\x1b\\` : shown
  }
  return { id: colour(33), path, dim: colour(2), added: colour(32), removed: colour(31) }
}
