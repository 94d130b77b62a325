/**
 * Messages of classes whose fields are getters, as those of generated clients. A copy of such an object lacks these fields, so plain
 * objects stand for them while they are compared and edited.
 */
import { oncePer } from '../core/index.ts'
import { guarded, opaque } from './identity.ts'

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

const hasGetters = oncePer((message: object): boolean => plainOf(message, LEVELS) !== message)

/** The value with plain objects in place of those with getters; itself if it has none. */
function plainOf(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => plainOf(item, levels - 1))
    return items.every((item, at) => item === value[at]) ? value : items
  }
  if (opaque(value) !== undefined) return value
  const getters = gettersOf(Object.getPrototypeOf(value))
  const fields = [...new Set([...Object.keys(value), ...getters])].map((name) => {
    const field = (value as Record<string, unknown>)[name]
    return [name, field, plainOf(field, levels - 1)] as const
  })
  const isPlain = getters.length === 0 && fields.every(([, field, plain]) => field === plain)
  return isPlain ? value : Object.fromEntries(fields.map(([name, , plain]) => [name, plain]))
}

/** The names of the getters that an object of this prototype has. */
function gettersOf(prototype: object | null): readonly string[] {
  return prototype === null || prototype === Object.prototype ? NONE : named(prototype)
}

const NONE: readonly string[] = []

const named = oncePer((prototype: object): readonly string[] => {
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { get }]) => (get === undefined ? [] : [name]))
  return [...gettersOf(Object.getPrototypeOf(prototype) as object | null), ...own]
})
