/** The contents of a store, from its export: sizes by object, sessions, and objects that no session has. */
import { jsonLines } from '../recordings/index.ts'
import { subject } from '../ui/index.ts'

/** One object. */
export interface ObjectSummary {
  id: string
  type: string
  /** Its name for people: a path, a tool. */
  name: string
  versions: number
  /** The transactions that wrote the versions, with their times; a copy of the store has its own numbers. */
  written: { tx: number; time: string }[]
  /** Bytes of all versions' lines in the export, without compression or sharing. */
  bytes: number
}

/** A whole store. */
export interface Contents {
  objects: ObjectSummary[]
  /** The number of sessions that have a document or a chat. */
  sessions: number
  /** Content objects in no session's index. */
  orphans: ObjectSummary[]
}

/** Reads an export. Memory grows with the number of objects, not with their contents. */
export async function contentsOf(file: string): Promise<Contents> {
  const objects = new Map<string, ObjectSummary>()
  const reached = new Set<string>()
  const sessions = new Set<string>()
  for await (const { value } of jsonLines(file)) {
    const id = value['object']
    if (typeof id !== 'string') continue
    const document = value['document'] as Record<string, unknown> | undefined
    const known = objects.get(id) ?? { id, type: typeOf(id), name: id, versions: 0, written: [], bytes: 0 }
    known.versions += 1
    known.written.push({ tx: Number(value['tx_id']), time: String(value['tx_time']) })
    known.bytes += JSON.stringify(value).length
    if (document !== undefined) {
      known.type = String(document['type'] ?? known.type)
      known.name = nameOf(document) ?? known.name
    }
    objects.set(id, known)
    if (id.startsWith('session:') || id.startsWith('chat:')) sessions.add(id.slice(id.indexOf(':') + 1))
    if (id.startsWith('session:')) for (const member of membersIn(value)) reached.add(member)
  }
  const all = [...objects.values()]
  const orphans = all.filter(({ id, type }) => (type === 'file' || type === 'toolcall') && !reached.has(id))
  return { objects: all, sessions: sessions.size, orphans }
}

type Line = Record<string, unknown>

interface Operation {
  op: string
  path: string
  value?: unknown
}

/** Returns what a line adds to its session's index. An index never shrinks, so this is all that it ever has. */
function membersIn(line: Line): string[] {
  const document = line['document'] as Line | undefined
  return [
    ...list(document?.['session_index']),
    ...operations(line).flatMap(({ op, path, value }) => {
      if (op !== 'add' && op !== 'replace') return []
      if (path === '/session_index') return list(value)
      return path.startsWith('/session_index/') && typeof value === 'string' ? [value] : []
    }),
  ]
}

function operations(line: Line): Operation[] {
  return Array.isArray(line['patch']) ? (line['patch'] as Operation[]) : []
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

function typeOf(id: string): string {
  return /^(session|chat|system_prompt)\b/.exec(id)?.[1] ?? 'unknown'
}

function nameOf(document: Line): string | undefined {
  if (document['type'] === 'toolcall') return `${String(document['tool'])} ${subject(document['args']) || String(document['xt/id'])}`
  const source = document['source'] as { path?: unknown } | null | undefined
  return typeof source?.path === 'string' ? source.path : undefined
}
