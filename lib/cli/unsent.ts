/** Journals of XTDB databases on this machine that have what their databases lack. */
import { existsSync, readFileSync } from 'node:fs'
import type { StoreState } from '../../index.js'
import { journals, denial, unsentSentence } from '../core/index.ts'
import { inStore } from '../native/index.ts'
import { plain, tell } from '../ui/index.ts'

/** A journal, and how many of its transactions wait. */
export interface Unsent {
  path: string
  queued: number
  /** Why that can't be known; absent if it is. */
  unread?: string
}

/**
 * The journals beside the default store with something that waits, and those that this user may not read, except the one at this
 * path. Changes nothing.
 */
export async function unsentJournals(except?: string): Promise<Unsent[]> {
  const found: Unsent[] = []
  for (const path of journals().filter((journal) => journal !== except)) {
    const unread = [path, `${path}.progress`].map(denial).find((why) => why !== undefined)
    if (unread !== undefined) {
      found.push({ path, queued: 0, unread })
      continue
    }
    // One that is damaged, or of a newer version, is not what is asked about here.
    const queued = await queuedIn(path).catch(() => 0)
    if (queued > 0) found.push({ path, queued })
  }
  return found
}

/** Says which writes wait for the database, given the state that a store was closed with. */
export function tellUnsent(left: StoreState | undefined): void {
  const unsent = unsentSentence(left)
  if (unsent !== undefined) tell(plain(`pi-context-manager: ${unsent}`))
}

async function queuedIn(path: string): Promise<number> {
  const sent = sentOf(`${path}.progress`)
  const objects = await inStore({ kind: 'sqlite', path, readOnly: true }, (store) => store.objects())
  const waiting = objects.flatMap(({ written }) => written.map(({ txId }) => txId).filter((tx) => tx > sent))
  return new Set(waiting).size
}

/** The journal's newest transaction that its database has. */
function sentOf(hint: string): number {
  if (!existsSync(hint)) return 0
  const { sent } = JSON.parse(readFileSync(hint, 'utf8')) as { sent?: unknown }
  return typeof sent === 'number' ? sent : 0
}
