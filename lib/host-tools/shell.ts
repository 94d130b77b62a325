/** The part of a file that plain shell commands show, for hosts that have no tool of their own for that. */

/** A file that a command shows, from a line on. */
interface Shown {
  path: string
  offset?: number
  limit?: number
}

const PATH = `(?:'([^']+)'|"([^"$\`\\\\]+)"|([\\w./@+,:=%][\\w./@+,:=%-]*))`
const RANGE = `['"]?(\\d+),(\\d+|\\$)p['"]?`

const COMMANDS: readonly [pattern: RegExp, read: (found: readonly (string | undefined)[]) => Shown][] = [
  [new RegExp(`^(?:cat|nl -ba)(?: --)? ${PATH}$`), (found) => ({ path: pathIn(found, 1) })],
  [new RegExp(`^sed -n ${RANGE} ${PATH}$`), (found) => ranged(pathIn(found, 3), found[1], found[2])],
  [new RegExp(`^(?:cat|nl -ba) ${PATH} \\| sed -n ${RANGE}$`), (found) => ranged(pathIn(found, 1), found[4], found[5])],
  [new RegExp(`^head (?:-n ?|-)(\\d+) ${PATH}$`), (found) => ranged(pathIn(found, 2), '1', found[1])],
]

/** The part of a file that a command shows; undefined for one that does anything else. */
export function shownBy(command: string): Shown | undefined {
  for (const [pattern, read] of COMMANDS) {
    const found = pattern.exec(command.trim())
    if (found !== null) return read(found)
  }
  return undefined
}

/** The lines about a command that Codex puts before its output. */
const HEAD = /^(?:(?:Chunk ID|Wall time|Process exited with code|Exit code|Total output lines|Original token count)\b[^\n]*\n)+Output:\n/

/** An output without what its host says before it; of Cline's list of results, the one in it. */
export function outputAlone(text: string): string {
  return listed(text) ?? text.replace(HEAD, '')
}

function listed(text: string): string | undefined {
  if (!text.startsWith('[{"query":')) return undefined
  try {
    const [one, ...others] = JSON.parse(text) as { query?: unknown; result?: unknown; success?: unknown }[]
    return others.length === 0 && one?.success === true && typeof one.result === 'string' ? one.result : undefined
  } catch {
    return undefined
  }
}

/** True if an output is exactly the lines of a text that were asked for; its host may have left some out. */
export function showsLines(text: string, { offset = 1, limit }: { offset?: number; limit?: number }, output: string): boolean {
  const lines = text.split('\n').slice(offset - 1, limit === undefined ? undefined : offset - 1 + limit)
  return lines.join('\n').replace(/\n$/, '') === output.replace(/\n$/, '')
}

function pathIn(found: readonly (string | undefined)[], at: number): string {
  return found[at] ?? found[at + 1] ?? found[at + 2] ?? ''
}

function ranged(path: string, first: string | undefined, last: string | undefined): Shown {
  const offset = Number(first)
  return { path, offset, ...(last === '$' ? {} : { limit: Number(last) - offset + 1 }) }
}
