/**
 * Messages and blocks of classes whose fields are getters, as those of generated clients. A copy of such an object lacks these fields,
 * so plain objects stand in their places while they are compared and edited. What a host puts into a message besides (arguments,
 * data, options) stays as it is.
 */
import { oncePer } from '../core/index.ts'
import { guarded } from './identity.ts'
import type { Shape } from './shape.ts'

/** Messages with plain objects in place of those with getters, and the host's own for what is sent of them. */
export interface PlainMessages {
  messages: readonly object[]
  /** The host's message in place of which a message is sent; the sent one itself if it is the host's. */
  own: (sent: object) => object
}

/** The fields by which messages and blocks are read, and those of them that hold others. */
const FIELDS: ReadonlySet<string> = new Set([
  'role',
  'type',
  'text',
  'content',
  'parts',
  'tool_calls',
  'function',
  'functionCall',
  'functionResponse',
  'output',
])
const NESTED: ReadonlySet<string> = new Set(['content', 'parts', 'tool_calls', 'function', 'functionCall', 'functionResponse', 'output', 'summary'])

/** The messages as they can be copied. `shape`: the one that the host has set. A custom one knows the host's classes. */
export function plainMessages(messages: readonly object[], shape?: Shape | string): PlainMessages {
  const isInstance = (message: unknown): boolean => typeof message === 'object' && message !== null && hasGetters(message)
  if (typeof shape === 'object' || !messages.some(isInstance)) return { messages, own: (sent) => sent }
  const owns = new Map<object, object>()
  const plain = messages.map((message) => {
    const one = guarded(() => plainOf(message)) as object
    if (one !== message) owns.set(one, message)
    return one
  })
  return { messages: plain, own: (sent) => owns.get(sent) ?? sent }
}

const hasGetters = oncePer((message: object): boolean => guarded(() => !isPlain(message)))

function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isPlain)
  if (gettersOf(value).length > 0) return false
  for (const name of NESTED) if (!isPlain((value as Record<string, unknown>)[name])) return false
  return true
}

/** The value with plain objects in place of those with getters; itself if it has none. */
function plainOf(value: unknown): unknown {
  if (isPlain(value)) return value
  if (Array.isArray(value)) return value.map(plainOf)
  const names = new Set([...Object.keys(value as object), ...gettersOf(value as object)])
  return Object.fromEntries(
    [...names].map((name) => {
      const field = (value as Record<string, unknown>)[name]
      return [name, NESTED.has(name) ? plainOf(field) : field]
    }),
  )
}

/** The names of an object's getters, if it is a message or a block. */
function gettersOf(value: object): readonly string[] {
  const names = inherited(Object.getPrototypeOf(value) as object | null)
  return names.some((name) => FIELDS.has(name)) ? names : NONE
}

/** The names of the getters of a prototype. The last one is that of all objects, also of those of another realm. */
function inherited(prototype: object | null): readonly string[] {
  return prototype === null || Object.getPrototypeOf(prototype) === null ? NONE : declared(prototype)
}

const NONE: readonly string[] = []

const declared = oncePer((prototype: object): readonly string[] => {
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { get }]) => (get === undefined ? [] : [name]))
  return [...inherited(Object.getPrototypeOf(prototype) as object | null), ...own]
})
