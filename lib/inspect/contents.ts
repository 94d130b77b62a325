/** The contents of a store: sizes by object, sessions, and objects that no session has. */
import type { StoredObject } from '../../index.js'
import type { Store } from '../native/index.ts'
import { subject } from '../ui/index.ts'

/** One object. */
export interface ObjectSummary {
  id: string
  type: string
  /** Its name for people: a path, a tool. */
  name: string
  versions: number
  /** Bytes of all versions as an export writes them, without compression or sharing. */
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

/** Reads a store. Memory grows with the number of objects, not with their contents. */
export async function contentsOf(store: Pick<Store, 'objects' | 'get'>): Promise<Contents> {
  const objects = (await store.objects()).map(summaryOf)
  const reached = new Set<string>()
  const sessions = new Set<string>()
  for (const { id, type } of objects) {
    if (type === 'session' || type === 'chat') sessions.add(id.slice(id.indexOf(':') + 1))
    // An index never shrinks, so the newest version has everything.
    if (type === 'session') for (const member of idsIn((await store.get(id))?.document, 'session_index')) reached.add(member)
  }
  const orphans = objects.filter(({ id, type }) => (type === 'file' || type === 'toolcall') && !reached.has(id))
  return { objects, sessions: sessions.size, orphans }
}

/** The IDs in a set of a session's document; none without the document. */
export function idsIn(session: Record<string, unknown> | undefined, name: string): string[] {
  const set = session?.[name]
  return Array.isArray(set) ? set.filter((one): one is string => typeof one === 'string') : []
}

function summaryOf({ id, type, path, tool, args, written, bytes }: StoredObject): ObjectSummary {
  const name = path ?? (tool === undefined ? id : `${tool} ${subject(args) || id}`)
  return { id, type, name, versions: written.length, bytes }
}
