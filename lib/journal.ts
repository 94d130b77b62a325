/** Where the journal in front of an XTDB database is. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** The journal's default path. One per database: it has what that database does not have yet. Failover nodes come and go. */
export function journalOf(url: string, folder: string): string {
  return join(folder, `xtdb-${createHash('sha256').update(url).digest('hex').slice(0, 12)}.db`)
}
