/** What the names in a command stand for: objects, versions and sessions. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { asStored, inStore } from './store.ts'
import type { NamedStore } from './store.ts'
import { NotFound, UsageError } from './terminal.ts'

/** How many digits of a short name are shown. */
const SHORT = 8

/** The short name of an object, as the model and Pi's screen show it. Every command takes it in place of the ID. */
export function shortName(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, SHORT)
}

/** The IDs' shortest beginnings, of at least eight characters, that no other of them has. */
export function shortened(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  return new Map(
    sorted.map((id, index) => {
      const others = [sorted[index - 1] ?? '', sorted[index + 1] ?? '']
      const shared = Math.max(...others.map((other) => commonLength(id, other)))
      return [id, id.slice(0, Math.max(SHORT, shared + 1))]
    }),
  )
}

function commonLength(left: string, right: string): number {
  let length = 0
  while (length < left.length && left[length] === right[length]) length += 1
  return length
}

/** The object that an ID, its beginning, a short name or a file's path stands for. Throws {@link NotFound}, {@link UsageError}. */
export async function objectOf({ options, name: store }: NamedStore, name: string): Promise<string> {
  const found = await named(options, name)
  const [id] = found
  if (id === undefined) throw new NotFound(`${store} has no object ${name}; "search" and "log" show IDs`)
  if (found.length > 1) throw ambiguous(name, found)
  return id
}

/** The same with a version: `ID@TX`. A file's own name may end so. */
export async function versionOf(store: NamedStore, name: string): Promise<{ id: string; tx?: number }> {
  const [, object = '', tx] = /^(.+)@(\d+)$/s.exec(name) ?? []
  if (tx === undefined || (await named(store.options, name)).length > 0) return { id: await objectOf(store, name) }
  return { id: await objectOf(store, object), tx: Number(tx) }
}

/** The session whose ID this is, or begins so. Throws {@link NotFound}, {@link UsageError}. */
export async function sessionOf({ options, name: store }: NamedStore, given: string): Promise<string> {
  const found = (await inStore(options, (store) => store.find(`${SESSION}${given}`))).map((id) => id.slice(SESSION.length))
  const [id] = found
  if (given === '' || id === undefined) throw new NotFound(`${store} has no session ${given}; "sessions" lists them`)
  if (found.length > 1) throw ambiguous(given, found)
  return id
}

const SESSION = 'session:'

/** How many candidates an error names. */
const NAMED = 5

function ambiguous(name: string, found: readonly string[]): UsageError {
  const more = found.length > NAMED ? ', …' : ''
  return new UsageError(`${name} may be ${found.slice(0, NAMED).join(', ')}${more}; give more of it`)
}

async function named(options: StoreOptions, name: string): Promise<string[]> {
  const found = await inStore(options, (store) => store.find(name))
  return found.length > 0 ? found : inStore(options, (store) => store.find(asStored(resolve(name))))
}
