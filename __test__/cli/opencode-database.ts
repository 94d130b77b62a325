/** OpenCode's database, with the tables that OpenCode 1.18.33 makes, as far as they are read. */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { NODE } from '../replay/support.ts'

const WRITE = `
const { DatabaseSync } = require('node:sqlite')
const [path, text] = process.argv.slice(1)
const db = new DatabaseSync(path)
db.exec('PRAGMA journal_mode = WAL')
db.exec('CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)')
db.exec('CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)')
db.exec('CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)')
const rest = ({ id, sessionID, messageID, ...data }) => JSON.stringify(data)
for (const { info, messages } of JSON.parse(text)) {
  db.prepare('INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)').run(info.id, 'global', info.parentID ?? null, info.slug, info.directory, info.title, info.version, info.time.created, info.time.updated)
  for (const { info: message, parts } of messages) {
    db.prepare('INSERT INTO message VALUES (?, ?, 1, 1, ?)').run(message.id, message.sessionID, rest(message))
    for (const part of parts) db.prepare('INSERT INTO part VALUES (?, ?, ?, 1, 1, ?)').run(part.id, part.messageID, part.sessionID, rest(part))
  }
}
db.close()
`

/** Writes a database with these sessions, each as `opencode export` writes it: its facts, and its messages with their parts. */
export function writeDatabase(path: string, sessions: readonly object[]): void {
  mkdirSync(dirname(path), { recursive: true })
  execFileSync(NODE[0]!, ['--disable-warning=ExperimentalWarning', '-e', WRITE, path, JSON.stringify(sessions)])
}
