/** The contents of a store, from its export: sizes by object, sessions, and objects that no session has. */
import { jsonLines } from '../replay/lines.ts'
import { subject } from './names.ts'

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

/** One session. */
export interface SessionSummary {
  id: string
  turns: number
  /** Objects that it has encountered. */
  objects: number
  /** When it was last written, RFC 3339. */
  lastWritten: string
  /** The folder that it worked in, if that is known. */
  folder?: string
  /** The beginning of the first prompt, on one line. */
  firstPrompt?: string
}

/** A whole store. */
export interface Contents {
  objects: ObjectSummary[]
  sessions: SessionSummary[]
  /** Content objects in no session's index. */
  orphans: ObjectSummary[]
}

/** Reads an export. Memory grows with the number of objects, not with their contents. */
export async function contentsOf(file: string): Promise<Contents> {
  const objects = new Map<string, ObjectSummary>()
  const indexes = new Map<string, Set<string>>()
  const sessions = new Map<string, SessionSummary>()
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
    if (id.startsWith('session:')) follow(sessions, indexes, id, value)
    if (id.startsWith('chat:')) turns(sessions, id, value)
  }
  const all = [...objects.values()]
  const reached = new Set([...indexes.values()].flatMap((index) => [...index]))
  const orphans = all.filter(({ id, type }) => (type === 'file' || type === 'toolcall') && !reached.has(id))
  for (const session of sessions.values()) session.objects = indexes.get(session.id)?.size ?? 0
  return { objects: all, sessions: [...sessions.values()], orphans }
}

type Line = Record<string, unknown>

interface Operation {
  op: string
  path: string
  value?: unknown
}

function sessionOf(sessions: Map<string, SessionSummary>, id: string): SessionSummary {
  const name = id.slice(id.indexOf(':') + 1)
  let session = sessions.get(name)
  if (session === undefined) sessions.set(name, (session = { id: name, turns: 0, objects: 0, lastWritten: '' }))
  return session
}

/** A session's index never shrinks, so it is everything ever added. */
function follow(
  sessions: Map<string, SessionSummary>,
  indexes: Map<string, Set<string>>,
  id: string,
  line: Line,
): void {
  const session = sessionOf(sessions, id)
  touch(session, line)
  const index = indexes.get(session.id) ?? new Set<string>()
  indexes.set(session.id, index)
  const document = line['document'] as Line | undefined
  for (const member of list(document?.['session_index'])) index.add(member)
  for (const { op, path, value } of operations(line)) {
    if (op !== 'add' && op !== 'replace') continue
    if (path === '/session_index') for (const member of list(value)) index.add(member)
    else if (path.startsWith('/session_index/') && typeof value === 'string') index.add(value)
  }
}

function turns(sessions: Map<string, SessionSummary>, id: string, line: Line): void {
  const session = sessionOf(sessions, id)
  touch(session, line)
  const count = (line['document'] as Line | undefined)?.['turn_count']
  if (typeof count === 'number') session.turns = count
  for (const { path, value } of operations(line)) {
    if (path === '/turn_count' && typeof value === 'number') session.turns = value
  }
}

function touch(session: SessionSummary, line: Line): void {
  const time = String(line['tx_time'] ?? '')
  if (time > session.lastWritten) session.lastWritten = time
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
  if (document['type'] === 'toolcall')
    return `${String(document['tool'])} ${subject(document['args']) || String(document['xt/id'])}`
  const source = document['source'] as { path?: unknown } | null | undefined
  return typeof source?.path === 'string' ? source.path : undefined
}
