/** The name that users see for a tool call, and how it is shortened. */
import { homedir } from 'node:os'
import { isAbsolute, relative, sep } from 'node:path'
import { stripTerminalSequences, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import type { ObjectDocument } from '../index.js'
import { headerLine, nameInPath } from '../lib/lines/index.ts'
import { shown } from '../lib/ui/index.ts'

/**
 * A call's file, command or search, whole and on one line; the tool's name if its arguments name none of these. `names` has
 * the names of earlier outputs by their short ids, because a call that brings one back gets its name.
 */
export function nameOf(tool: string, args: Record<string, unknown>, cwd: string, names: ReadonlyMap<string, string> = new Map()): string {
  const text = (field: string): string | undefined => {
    const value = args[field]
    if (typeof value !== 'string') return undefined
    // Paths and commands may contain anything, even control sequences for the terminal and signs that turn the text around.
    const line = shown(value.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim())
    return line === '' ? undefined : line
  }
  const path = text('path') ?? text('file_path')
  const command = text('command')
  if (command !== undefined) return withoutFolder(command, cwd)
  const search = text('pattern') ?? text('query')
  if (search !== undefined) {
    const pattern = tool === 'grep' ? `/${search}/` : search
    return path === undefined ? pattern : `${pattern} in ${shortPath(path, cwd)}`
  }
  const id = idIn(args)
  if (id !== undefined) return names.get(id) ?? headerLine(id)
  return path === undefined ? tool : `${shortPath(path, cwd)}${rangeOf(args)}`
}

/** The id of the object that a call brings back, without a transaction; undefined for a call of anything else. */
export function idIn({ id, path }: Record<string, unknown>): string | undefined {
  const named = typeof id === 'string' ? id : typeof path === 'string' ? nameInPath(path) : undefined
  return named?.replace(/@.*/, '')
}

/** The name of a recorded object: a file's path, or what its call was about. `names` is that of {@link nameOf}. */
export function nameOfObject({ type, source, tool, args }: ObjectDocument, cwd: string, names?: ReadonlyMap<string, string>): string {
  return nameOf(String(tool ?? type), ((type === 'file' ? source : args) ?? {}) as Record<string, unknown>, cwd, names)
}

/**
 * Shortens a name to at most `width` columns. A path loses folders from the left, anything else its end.
 */
export function fitName(name: string, width: number): string {
  if (visibleWidth(name) <= width) return name
  const range = /:\d+(?:-\d+)?$/.exec(name)?.[0] ?? ''
  const path = name.slice(0, name.length - range.length)
  if (path.includes(' ')) return cut(name, width)
  const folders = path.split('/')
  while (folders.length > 1) {
    folders.shift()
    const rest = `…/${folders.join('/')}${range}`
    if (visibleWidth(rest) <= width) return rest
  }
  return cut(`${folders[0]}${range}`, width)
}

/**
 * Shortens names as {@link fitName} does. Paths that would look the same keep the folder in which they differ, as in
 * `…/server/…/index.ts`, and commands the word, as in `npm r…test`.
 */
export function fitNames(names: readonly string[], width: number): string[] {
  const fitted = names.map((name) => fitName(name, width))
  const groups = new Map<string, Set<string>>()
  for (const [index, name] of names.entries()) {
    const short = fitted[index] as string
    groups.set(short, (groups.get(short) ?? new Set()).add(name))
  }
  const own = new Map([...groups.values()].filter(({ size }) => size > 1).flatMap((group) => [...ownStarts(group)]))
  return names.map((name, index) => {
    const short = fitted[index] as string
    const others = groups.get(short) as ReadonlySet<string>
    if (others.size < 2) return short
    return (name.includes(' ') ? withOwnWord(name, own.get(name) ?? 0, width) : withDifference(name, others, width)) ?? short
  })
}

/** For each of these names, the start of the word in which it differs from all others. */
function ownStarts(names: ReadonlySet<string>): Map<string, number> {
  const sorted = [...names].sort()
  const same = (left: string, right: string | undefined): number => {
    let length = 0
    while (right !== undefined && length < left.length && left[length] === right[length]) length += 1
    return length
  }
  return new Map(
    sorted.map((name, at) => {
      const differs = Math.max(same(name, sorted[at - 1]), same(name, sorted[at + 1]))
      return [name, /[\p{L}\p{N}]*$/u.exec(name.slice(0, differs))?.index ?? differs]
    }),
  )
}

/** The largest share of a shortened command that its own word and what follows it have. */
const OWN_SHARE = 0.6

/** A command as its beginning and its own word with what follows; undefined if that does not fit. */
function withOwnWord(name: string, start: number, width: number): string | undefined {
  const room = Math.min(name.length - start, Math.floor(OWN_SHARE * width))
  const end = start + room < name.length ? `${name.slice(start, start + room - 1)}…` : name.slice(start)
  const text = `${name.slice(0, Math.max(0, width - 1 - room))}…${end}`
  return room > 1 && visibleWidth(text) <= width ? text : undefined
}

/** A path as the folder that its namesakes don't have in that place, and its last part; undefined if that does not fit. */
function withDifference(name: string, namesakes: ReadonlySet<string>, width: number): string | undefined {
  const folders = name.split('/')
  const others = [...namesakes].filter((one) => one !== name).map((one) => one.split('/'))
  // From the end, where the reader looks first.
  for (let place = 2; place <= folders.length; place += 1) {
    const folder = folders.at(-place)
    if (others.some((one) => one.at(-place) === folder)) continue
    const text = [...(place < folders.length ? ['…'] : []), folder, ...(place > 2 ? ['…'] : []), folders.at(-1)].join('/')
    if (visibleWidth(text) <= width) return text
  }
  return undefined
}

/** Shortens text. Removes the terminal codes around the ellipsis, because they would end the row's colour. */
function cut(text: string, width: number): string {
  return stripTerminalSequences(truncateToWidth(text, width, '…'))
}

/** Agents often begin a command by changing to the folder in which it runs anyway. */
function withoutFolder(command: string, cwd: string): string {
  for (const prefix of [`cd ${cwd} && `, `cd ${cwd}; `]) {
    if (command.startsWith(prefix)) return command.slice(prefix.length)
  }
  return command
}

function shortPath(path: string, cwd: string): string {
  if (!isAbsolute(path)) return path
  const inside = relative(cwd, path)
  if (inside === '') return '.'
  if (inside !== '..' && !inside.startsWith(`..${sep}`)) return inside
  const home = homedir()
  return path.startsWith(`${home}${sep}`) ? `~${path.slice(home.length)}` : path
}

/** The lines that a read asked for, as editors write them. */
function rangeOf({ offset, limit }: Record<string, unknown>): string {
  const first = typeof offset === 'number' ? offset : undefined
  const count = typeof limit === 'number' ? limit : undefined
  if (first === undefined && count === undefined) return ''
  return `:${first ?? 1}${count === undefined ? '' : `-${(first ?? 1) + count - 1}`}`
}
