/** The name by which a person knows a tool call, and how it is made to fit. */
import { homedir } from 'node:os'
import { isAbsolute, relative, sep } from 'node:path'
import { stripTerminalSequences, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { objectIn } from './recall.ts'

/**
 * A call's file, command or search on one line, whole. `names` are those of earlier outputs by their short ids: a call
 * that brings one back has its name. The tool's name where the arguments name nothing.
 */
export function nameOf(
  tool: string,
  args: Record<string, unknown>,
  cwd: string,
  names: ReadonlyMap<string, string> = new Map(),
): string {
  const text = (field: string): string | undefined => {
    const value = args[field]
    if (typeof value !== 'string') return undefined
    // A path or a command may hold anything, also what would move the cursor.
    const line = value.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
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
  const id = text('id') ?? (path === undefined ? undefined : objectIn(path))
  if (id !== undefined) return names.get(id.replace(/@.*/, '')) ?? `id=${id}`
  return path === undefined ? tool : `${shortPath(path, cwd)}${rangeOf(args)}`
}

/**
 * A name in at most `width` columns. Of a path the folders go first, from the left; of anything else the end goes. The
 * middle always stays.
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

/** Without the codes around the mark, which would end the row's colour there. */
function cut(text: string, width: number): string {
  return stripTerminalSequences(truncateToWidth(text, width, '…'))
}

/** Agents often begin a command with the folder that it runs in anyway. */
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
