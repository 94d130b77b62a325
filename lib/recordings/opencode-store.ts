/**
 * OpenCode's own database (`~/.local/share/opencode/opencode.db`): sessions, messages and parts, each with its data as JSON. A session
 * in it has a separate path, the database's with its ID behind it, and is read as its export would be. It is opened
 * read-only.
 */
import { createRequire } from 'node:module'
import type { DatabaseSync } from 'node:sqlite'
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { NotReplayable } from './recording.ts'

/** An OpenCode session: what its export consists of. */
export interface OpenCodeDocument {
  info: Fields
  messages: { info: Fields; parts: Fields[] }[]
}

/** The path of a database, by its name: OpenCode's channels have their own, such as `opencode-dev.db`. */
const DATABASE = /(?:^|[/\\])opencode[\w.-]*\.db$/

/** True if a path may be one of OpenCode's databases. */
export function isOpenCodeDatabase(path: string): boolean {
  return DATABASE.test(path)
}

/** The database and the session of a path; undefined if it is of another kind. */
export function placeInDatabase(path: string): { database: string; session: string } | undefined {
  const [, database = '', session = ''] = /^(.*\.db)#([\w-]+)$/s.exec(path) ?? []
  return DATABASE.test(database) ? { database, session } : undefined
}

/** The paths of the sessions in a database, the newest first. Throws {@link NotReplayable}. */
export function sessionsIn(database: string): string[] {
  return reading(database, (opened) =>
    opened
      .prepare('SELECT id FROM session ORDER BY time_updated DESC, id')
      .all()
      .map(({ id }) => `${database}#${String(id)}`),
  )
}

/** A session in a database, in the form of an export. Throws {@link NotReplayable}. */
export function sessionIn({ database, session }: { database: string; session: string }): OpenCodeDocument {
  return reading(database, (opened) => {
    const found = opened.prepare('SELECT id, parent_id, directory, title, time_created FROM session WHERE id = ?').get(session)
    if (found === undefined) throw new NotReplayable('the database has no such session')
    const parts = new Map<string, Fields[]>()
    for (const { id, message_id: message, data } of opened.prepare('SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id').all(session)) {
      const of = parts.get(String(message)) ?? []
      parts.set(String(message), of)
      of.push({ ...fieldsIn(data), id })
    }
    const messages = opened.prepare('SELECT id, data FROM message WHERE session_id = ? ORDER BY id').all(session)
    return {
      info: {
        id: found['id'],
        directory: found['directory'],
        title: found['title'],
        time: { created: found['time_created'] },
        ...(found['parent_id'] !== null && { parentID: found['parent_id'] }),
      },
      messages: messages.map(({ id, data }) => ({ info: { ...fieldsIn(data), id }, parts: parts.get(String(id)) ?? [] })),
    }
  })
}

function fieldsIn(data: unknown): Fields {
  try {
    const found: unknown = JSON.parse(String(data))
    return isFields(found) ? found : {}
  } catch {
    // A damaged row counts as one without fields.
    return {}
  }
}

function reading<T>(database: string, read: (opened: DatabaseSync) => T): T {
  const { DatabaseSync: Database } = sqlite()
  let opened: DatabaseSync | undefined
  try {
    opened = new Database(database, { readOnly: true })
    return read(opened)
  } catch (error) {
    throw error instanceof NotReplayable ? error : new NotReplayable(`OpenCode's database can't be read (${(error as Error).message})`)
  } finally {
    opened?.close()
  }
}

/** Node's own SQLite, without the warning that it is experimental. Throws {@link NotReplayable} where Node has none. */
function sqlite(): typeof import('node:sqlite') {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return createRequire(import.meta.url)('node:sqlite') as typeof import('node:sqlite')
  } catch {
    throw new NotReplayable(
      `OpenCode's database takes Node 22.13 or newer, and this is ${process.version}; "opencode export SESSION > session.json" writes a file that can be read`,
    )
  } finally {
    process.emitWarning = emitWarning
  }
}
