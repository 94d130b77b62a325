/** The program's output: results on standard output, everything else on standard error. */

import { atWords, widthOf } from './columns.ts'

/** A failure whose message is for the user: one line, optionally followed by help. */
export class UsageError extends Error {
  constructor(message: string, help?: string) {
    super(help === undefined ? plain(message) : `${plain(message)}\n\n${help}`)
  }
}

/** A failure to find what was requested: exit code 1, as with grep. */
export class NotFound extends Error {}

/** Why the system refused a file, without its code and without the path: `no such file or directory`. */
export function reasonOf(error: unknown): string {
  return (error as Error).message.replace(/^\w+: /, '').replace(/, \w+(?: '.*)?$/s, '')
}

/** Writes a line of the result, or several. */
export function out(line: string): void {
  process.stdout.write(`${shown(line)}\n`)
}

/** Writes our own lines, which may have colours. Text from elsewhere must have passed through {@link plain}. */
export function painted(lines: string): void {
  process.stdout.write(`${lines}\n`)
}

/** Tells the user something that is not a result. A terminal gets it in lines that end between words. */
export function tell(line: string): void {
  process.stderr.write(`${process.stderr.isTTY === true ? atWords(shown(line), widthOf(process.stderr)) : shown(line)}\n`)
}

/** Tells a command that the user may copy: in one line, however long it is. */
export function tellCommand(line: string): void {
  process.stderr.write(`${shown(line)}\n`)
}

/**
 * A text with everything that controls a terminal replaced by `\\u` escapes, as in JSON: control characters except
 * the line feed (ESC, OSC and the like), and characters that are invisible or change the writing direction.
 */
export function shown(text: string): string {
  return text.replace(STEERING, escaped)
}

/** The same for one line: a stored name can't start another line. */
export function plain(text: string): string {
  return shown(text).replaceAll('\n', escaped)
}

const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** `1 text`, `2 texts`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** True if a stream shows colours: a terminal, unless the user wants none. */
export function showsColours(stream: { isTTY?: boolean }): boolean {
  return stream.isTTY === true && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb'
}

/**
 * True if a stream shows links to files: terminals that are known to (OSC 8). `FORCE_HYPERLINK` set to 0 or 1
 * decides.
 */
export function showsLinks(stream: { isTTY?: boolean }): boolean {
  const { FORCE_HYPERLINK: forced, TERM_PROGRAM: program = '', TERM: term = '', VTE_VERSION: vte, WT_SESSION } = process.env
  if (stream.isTTY !== true) return false
  if (forced !== undefined && forced !== '') return forced !== '0'
  if (!showsColours(stream)) return false
  return LINKING.has(program) || /kitty|ghostty|foot|alacritty|contour/.test(term) || Number(vte) >= 5000 || WT_SESSION !== undefined
}

/** Values of `TERM_PROGRAM`. */
const LINKING: ReadonlySet<string> = new Set(['iTerm.app', 'WezTerm', 'vscode', 'ghostty', 'Hyper', 'rio', 'zed'])

/** Before this many milliseconds, the remaining time can't be estimated. */
const LEARNING_MS = 2000

/** A progress bar stands on the last line. */
let isBarShown = false

/** Removes the progress bar, if there is one, for a program that ends in the middle of its work. True if there was one. */
export function clearBar(): boolean {
  const wasShown = isBarShown
  if (wasShown) process.stderr.write('\r\x1b[K')
  isBarShown = false
  return wasShown
}

/**
 * A progress bar on the last line of the terminal, with the remaining time; nothing if standard error is not a
 * terminal.
 */
export class Progress {
  readonly #live = process.stderr.isTTY === true
  readonly #started = Date.now()
  #drawn = 0

  /** Shows the finished part of the work, from 0 to 1, and the current item. */
  show(part: number, text: string): void {
    const now = Date.now()
    if (!this.#live || now - this.#drawn < 80) return
    this.#drawn = now
    isBarShown = true
    process.stderr.write(`\r\x1b[K${progressLine(part, text, now - this.#started, process.stderr.columns ?? 80)}`)
  }

  /** Removes the bar, so that other lines can follow. */
  clear(): void {
    if (this.#live && this.#drawn > 0) clearBar()
  }
}

/** The columns of a bar, at most and at least, and the fewest of a text beside it. */
const BAR = 24
const SHORTEST_BAR = 4
const LEAST_ROOM = 10

/** The bar, the finished part, the remaining time and the end of a text, as far as they fit into a number of columns. */
export function progressLine(part: number, text: string, elapsedMs: number, columns: number): string {
  const words = `${Math.floor(100 * part)} %${timeLeft(elapsedMs, part)}`
  // Two columns stay free for the ^C that a terminal shows.
  const free = columns - words.length - 2
  const width = Math.min(BAR, free - LEAST_ROOM - 4)
  const full = Math.min(width, Math.floor(width * part))
  const bar = width < SHORTEST_BAR ? '' : `[${'#'.repeat(full)}${'-'.repeat(width - full)}] `
  const room = free - bar.length - 1
  const line = plain(text)
  const cut = line.length > room ? `…${line.slice(1 - room)}` : line
  return `${bar}${words}${room < LEAST_ROOM ? '' : ` ${cut}`}`
}

/** The remaining time, as `, 1:20 left`; empty if it can't be estimated. */
export function timeLeft(elapsedMs: number, part: number): string {
  if (elapsedMs < LEARNING_MS || part <= 0 || part >= 1) return ''
  const seconds = Math.ceil((elapsedMs * (1 - part)) / part / 1000)
  return `, ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left`
}

/** The number given for an option. Throws a {@link UsageError} if it is out of bounds. */
export function numberOf(name: string, text: string | undefined, fallback: number, min = 0, max = Number.MAX_SAFE_INTEGER): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < min || value > max) {
    throw new UsageError(`--${name} needs a number from ${min} to ${max}, not "${text}"`)
  }
  return value
}

/** The same for an option that counts something. */
export function countOf(name: string, text: string | undefined, fallback: number, min = 0, max = Number.MAX_SAFE_INTEGER): number {
  const value = numberOf(name, text, fallback, min, max)
  if (!Number.isInteger(value)) throw new UsageError(`--${name} needs a whole number, not "${text}"`)
  return value
}
