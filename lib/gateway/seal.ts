/**
 * The items that replace messages in a form, as they are on disk: readable only with the messages themselves, up
 * to there. A host that continues the conversation sends them; no other program can read a forgotten text in a form.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { isEdited, lacksParts, nextsOf, placeOf, wholeLength } from '../projection/index.ts'
import type { JsonEdit, EditedItem } from '../projection/index.ts'

/** An item on disk. The third part of an edit is there if the message goes out without one of its first parts. */
export type Sealed = number | readonly [at: number, sealed: string, lacksParts?: true] | { add: string; isNotice?: true }

const CIPHER = 'aes-256-gcm'
const [NONCE, TAG] = [12, 16]

/** The items of a form from one on, sealed. Entry n of `chain` is the hash of the first n messages. */
export function sealed(items: readonly EditedItem[], from: number, chain: readonly string[]): Sealed[] {
  const own = items.slice(from)
  if (own.every((item) => typeof item === 'number')) return own as number[]
  const nexts = nextsOf(items, chain.length - 1)
  return own.map((item, n): Sealed => {
    const next = nexts[from + n] as number
    if (typeof item === 'number') return item
    if (isEdited(item)) {
      const edit = locked(item[1], chain[next + 1])
      return lacksParts(item) ? [item[0], edit, true] : [item[0], edit]
    }
    return { ...item, add: locked(item.add, chain[next]) }
  })
}

/** The items for the first messages of a conversation. */
export interface Unsealed {
  items: readonly EditedItem[]
  /** The number of messages that they stand for. */
  length: number
}

/**
 * The items for as many of the first `length` messages of a conversation with this chain as a form of `count` of them had without any
 * of the others. Undefined if they are damaged, or of another conversation.
 */
export function opened(items: readonly Sealed[], count: number, chain: readonly string[], length: number): Unsealed | undefined {
  const nexts = nextsOf(items as readonly EditedItem[], count)
  const whole = wholeLength(items as readonly EditedItem[], count, length, (item) => (item as readonly unknown[])[2] === true)
  try {
    const own = items.flatMap((item, n): EditedItem[] => {
      const next = nexts[n] as number
      if (placeOf(item as EditedItem) === undefined ? next > whole : next >= whole) return []
      if (typeof item === 'number') return [item]
      if (Array.isArray(item)) return [[next, unlocked(item[1] as string, chain[next + 1]) as JsonEdit]]
      return [{ ...(item as { add: string }), add: unlocked((item as { add: string }).add, chain[next]) }]
    })
    return { items: own, length: whole }
  } catch {
    return undefined
  }
}

/** True if a value from a file can be an item of a form for `count` messages. */
export function isSealed(item: unknown, count: number): item is Sealed {
  const [place, text] = Array.isArray(item) ? (item as unknown[]) : [item, '']
  if (typeof place === 'number') return Number.isInteger(place) && place >= 0 && place < count && typeof text === 'string'
  return typeof place === 'object' && place !== null && typeof (place as { add?: unknown }).add === 'string'
}

function keyFrom(hash: string | undefined): Buffer {
  if (hash === undefined) throw new RangeError('no hash of these messages')
  return createHash('sha256').update(`form ${hash}`).digest()
}

function locked(value: unknown, hash: string | undefined): string {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv(CIPHER, keyFrom(hash), nonce)
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')
}

/** Throws if it was locked with another hash. */
function unlocked(text: string, hash: string | undefined): unknown {
  const bytes = Buffer.from(text, 'base64')
  const decipher = createDecipheriv(CIPHER, keyFrom(hash), bytes.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()]).toString('utf8'))
}
