/**
 * Messages of classes whose fields are getters, as those of generated clients. A copy of such an object lacks these fields, so plain
 * objects stand for them while they are compared and edited.
 */
import { oncePer } from '../core/index.ts'
import { guarded } from './identity.ts'

/** The levels of a message that have fields of the formats: lists of blocks and calls, and what is in these. Arguments are deeper. */
const LEVELS = 6

/** Messages with plain objects in place of those with getters, and the host's own for what is sent of them. */
export interface PlainMessages {
  messages: readonly object[]
  /** The host's message in place of which a message is sent; the sent one itself if it is the host's. */
  own: (sent: object) => object
}

/** The messages as they can be copied. */
export function plainMessages(messages: readonly object[]): PlainMessages {
  if (!messages.some((message) => typeof message === 'object' && message !== null && hasGetters(message))) return { messages, own: (sent) => sent }
  const owns = new Map<object, object>()
  const plain = messages.map((message) => {
    const one = guarded(() => plainOf(message, LEVELS)) as object
    if (one !== message) owns.set(one, message)
    return one
  })
  return { messages: plain, own: (sent) => owns.get(sent) ?? sent }
}

const hasGetters = oncePer((message: object): boolean => !isPlain(message, LEVELS))

function isPlain(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || levels === 0) return true
  if (Array.isArray(value)) return value.every((item) => isPlain(item, levels - 1))
  if (gettersOf(Object.getPrototypeOf(value) as object | null).length > 0) return isBuiltIn(value)
  for (const name in value) if (!isPlain((value as Record<string, unknown>)[name], levels - 1)) return false
  return true
}

/** True for bytes, maps and the like, and for an object that says itself what JSON has of it. */
function isBuiltIn(value: object): boolean {
  return Object.prototype.toString.call(value) !== '[object Object]' || typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

/** The value with plain objects in place of those with getters; itself if it has none. */
function plainOf(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => plainOf(item, levels - 1))
    return items.every((item, at) => item === value[at]) ? value : items
  }
  if (isPlain(value, levels)) return value
  const getters = gettersOf(Object.getPrototypeOf(value))
  const names = new Set([...Object.keys(value), ...getters])
  const fields = [...names].map((name) => [name, plainOf((value as Record<string, unknown>)[name], levels - 1)] as const)
  return Object.fromEntries(fields)
}

/** The names of the getters that an object of this prototype has. The last prototype is that of all objects, also of those of another realm. */
function gettersOf(prototype: object | null): readonly string[] {
  return prototype === null || Object.getPrototypeOf(prototype) === null ? NONE : named(prototype)
}

const NONE: readonly string[] = []

const named = oncePer((prototype: object): readonly string[] => {
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { get }]) => (get === undefined ? [] : [name]))
  return [...gettersOf(Object.getPrototypeOf(prototype) as object | null), ...own]
})
