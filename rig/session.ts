/** Pi's session files, read back. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** One entry of a session file; which fields there are depends on `type` (Pi's docs/session-format.md). */
interface SessionEntry {
  type: string
  id: string
  parentId: string | null
  [field: string]: any
}

/** A session file. */
interface SessionFile {
  header: Record<string, any>
  entries: SessionEntry[]
  /** A last line that is not complete JSON: left by a kill in the middle of a write. */
  torn?: string
}

/** The session file that was written last below a folder, or undefined where there is none. */
export function newestSession(sessionsDir: string): string | undefined {
  return sessionFiles(sessionsDir).at(-1)
}

/** All session files below a folder, the one written last at the end. */
export function sessionFiles(sessionsDir: string): string[] {
  let names: string[]
  try {
    names = readdirSync(sessionsDir, { recursive: true }) as string[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return names
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => join(sessionsDir, name))
    .map((path) => ({ path, time: statSync(path).mtimeMs }))
    .sort((left, right) => left.time - right.time || (left.path < right.path ? -1 : 1))
    .map((file) => file.path)
}

/** Reads a session file. Throws when a line before the last is not JSON, or the first is not a session header. */
export function readSession(path: string): SessionFile {
  const lines = readFileSync(path, 'utf8').split('\n')
  const last = lines.pop() as string
  const [header, ...entries] = lines.map((line) => JSON.parse(line))
  if (header?.type !== 'session') throw new Error(`${path} does not begin with a session header`)
  if (last === '') return { header, entries }
  try {
    return { header, entries: [...entries, JSON.parse(last)] }
  } catch {
    return { header, entries, torn: last }
  }
}

/** The active branch, root first: the entries from the one written last up through its parents. */
export function branchOf(entries: readonly SessionEntry[]): SessionEntry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const branch: SessionEntry[] = []
  for (let entry = entries.at(-1); entry !== undefined; entry = byId.get(entry.parentId ?? '')) branch.unshift(entry)
  return branch
}

/** The messages of entries, in order, as Pi stored them; `role` picks one kind. */
export function messagesOf(entries: readonly SessionEntry[], role?: string): Record<string, any>[] {
  return entries.filter((entry) => entry.type === 'message' && (role === undefined || entry['message'].role === role)).map((entry) => entry['message'])
}
