/**
 * Remembers across processes which conversation a request continues: for each one, the number of its messages and a hash of
 * them. A gateway that is killed loses the last entries at most, and an older entry still is a beginning of its conversation.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { PlacedNotice } from './prefix.ts'

/** How far a conversation had come. */
export interface Tip {
  id: string
  cwd: string
  /** The session that it goes on from. */
  before?: string | undefined
  /** How many messages its last request had. */
  count: number
  /** The hash of these messages. */
  hash: string
  /** Our notices in it: the host does not have them. */
  notices?: readonly PlacedNotice[]
}

/** How many names are remembered; the longest unused ones are forgotten. */
const MOST = 500

/** How many conversations of one name. */
const MOST_OF_ONE = 20

/** How long a change may wait to be written, in milliseconds. */
const DELAY_MS = 200

/** The remembered conversations, in a file of this user. Without a path they are only in memory. */
export class Tips {
  readonly #path: string | undefined
  readonly #tips: Map<string, Tip[]>
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(path?: string) {
    this.#path = path
    this.#tips = path === undefined ? new Map() : readTips(path)
  }

  /** The conversations of a name, the latest last. */
  of(key: string): readonly Tip[] {
    return this.#tips.get(key) ?? []
  }

  /** Notes how far a conversation has come. */
  note(key: string, tip: Tip): void {
    const others = this.of(key).filter(({ id }) => id !== tip.id)
    this.#tips.delete(key)
    this.#tips.set(key, [...others.slice(1 - MOST_OF_ONE), tip])
    for (const oldest of [...this.#tips.keys()].slice(0, Math.max(0, this.#tips.size - MOST))) this.#tips.delete(oldest)
    if (this.#path === undefined) return
    this.#timer ??= setTimeout(() => void this.flush(), DELAY_MS)
    this.#timer.unref()
  }

  /** Writes what is not written yet. A file that can't be written costs a resume and nothing else. */
  flush(): Promise<void> {
    if (this.#timer === undefined || this.#path === undefined) return this.#writing
    clearTimeout(this.#timer)
    this.#timer = undefined
    const path = this.#path
    this.#writing = this.#writing.then(() => writeTips(path, this.#tips)).catch(() => {})
    return this.#writing
  }
}

function readTips(path: string): Map<string, Tip[]> {
  try {
    const found = JSON.parse(readFileSync(path, 'utf8')) as { version?: unknown; tips?: unknown }
    return found.version === 1 && Array.isArray(found.tips) ? new Map(found.tips as [string, Tip[]][]) : new Map()
  } catch {
    return new Map()
  }
}

/** Two gateways may write at once: each keeps what the other has written of other names. */
async function writeTips(path: string, tips: ReadonlyMap<string, Tip[]>): Promise<void> {
  const all = new Map([...readTips(path), ...tips])
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const part = `${path}.${process.pid}.part`
  await writeFile(part, JSON.stringify({ version: 1, tips: [...all].slice(-MOST) }), { mode: 0o600 })
  await rename(part, path)
}
