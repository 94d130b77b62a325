/**
 * The lifetimes that the cache markers of a request ask for, and the edit that asks for others. A marker is never added or
 * removed. Anthropic reads a request as tools, system, messages, and refuses an hour behind five minutes.
 */
import { applied } from './edit.ts'
import type { JsonEdit } from './edit.ts'
import { isFields, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import type { Asked, CacheLifetime, Choice } from '../models/index.ts'

/** Returns what a body in Anthropic's format asks for. */
export function askedIn(body: Fields): Asked {
  const asked: Asked = { head: undefined, conversation: lifetimeOf(body['cache_control']) }
  for (const block of headBlocks(body)) asked.head = longer(asked.head, lifetimeOf(block['cache_control']))
  for (const message of listOf(body['messages'])) {
    for (const block of blocksIn(message)) asked.conversation = longer(asked.conversation, lifetimeOf(block['cache_control']))
  }
  return asked
}

/** A body with other lifetimes; undefined if it asks for these. What stays are the same objects. */
export function withLifetimes(body: Fields, choice: Choice): Fields | undefined {
  const edit = lifetimeEdit(body, choice)
  return edit === undefined ? undefined : (applied(body, edit) as Fields)
}

/** The edit that makes a body ask for other lifetimes; undefined if it asks for these. */
export function lifetimeEdit(body: Fields, { head, conversation, hourUntil }: Choice): JsonEdit | undefined {
  const fields: Record<string, JsonEdit> = {}
  for (const name of ['tools', 'system'])
    set(
      fields,
      name,
      listEdit(body[name], (block) => markerEdit(block, head)),
    )
  const tail = head === '5m' ? '5m' : conversation
  set(
    fields,
    'messages',
    listEdit(body['messages'], (message, at) => messageEdit(message, tail === '5m' && head === '1h' && at < hourUntil ? '1h' : tail)),
  )
  set(fields, 'cache_control', ttlEdit(body['cache_control'], tail))
  return Object.keys(fields).length === 0 ? undefined : { fields }
}

function messageEdit(message: Fields, lifetime: CacheLifetime): JsonEdit | undefined {
  return contentEdit(message, (block) => {
    // A result has its own blocks.
    const inner = contentEdit(block, (one) => markerEdit(one, lifetime))
    return merged(markerEdit(block, lifetime), inner)
  })
}

function contentEdit(value: Fields, edit: (block: Fields) => JsonEdit | undefined): JsonEdit | undefined {
  const items = listEdit(value['content'], edit)
  return items === undefined ? undefined : { fields: { content: items } }
}

function markerEdit(block: Fields, lifetime: CacheLifetime): JsonEdit | undefined {
  const edit = ttlEdit(block['cache_control'], lifetime)
  return edit === undefined ? undefined : { fields: { cache_control: edit } }
}

/** A marker of a kind that we don't know stays as it is. */
function ttlEdit(marker: unknown, lifetime: CacheLifetime): JsonEdit | undefined {
  const asked = lifetimeOf(marker)
  if (asked === undefined || asked === lifetime) return undefined
  return { fields: { ttl: lifetime === '1h' ? { is: '1h' } : null } }
}

/** The lifetime that a marker asks for; undefined for an unknown marker, and without one. */
export function lifetimeOf(marker: unknown): CacheLifetime | undefined {
  if (!isFields(marker) || marker['type'] !== 'ephemeral') return undefined
  const ttl = textOf(marker['ttl'])
  return ttl === '1h' ? '1h' : ttl === '' || ttl === '5m' ? '5m' : undefined
}

function longer(one: CacheLifetime | undefined, other: CacheLifetime | undefined): CacheLifetime | undefined {
  return one === '1h' || other === '1h' ? '1h' : (one ?? other)
}

function headBlocks(body: Fields): Fields[] {
  return [...listOf(body['tools']), ...listOf(body['system'])]
}

function blocksIn(message: Fields): Fields[] {
  return listOf(message['content']).flatMap((block) => [block, ...listOf(block['content'])])
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

function listEdit(list: unknown, edit: (element: Fields, at: number) => JsonEdit | undefined): JsonEdit | undefined {
  if (!Array.isArray(list)) return undefined
  let isSame = true
  const items = list.map((element: unknown, at) => {
    const one = isFields(element) ? edit(element, at) : undefined
    if (one === undefined) return at
    isSame = false
    return [at, one] as const
  })
  return isSame ? undefined : { items }
}

function set(fields: Record<string, JsonEdit>, name: string, edit: JsonEdit | undefined): void {
  if (edit !== undefined) fields[name] = edit
}

function merged(one: JsonEdit | undefined, other: JsonEdit | undefined): JsonEdit | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return 'fields' in one && 'fields' in other ? { fields: { ...one.fields, ...other.fields } } : one
}
