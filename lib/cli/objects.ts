/** The objects, versions and sessions that the names in a command stand for. */
import { resolve } from 'node:path'
import type { SessionSummary, StoreOptions } from '../../index.js'
import { hostTitle } from '../core/index.ts'
import type { HostName } from '../core/index.ts'
import { asStored, inStore } from '../native/index.ts'
import { Hosts } from './hosts.ts'
import type { NamedStore } from './store.ts'
import { NotFound, shortName, UsageError } from '../ui/index.ts'

/** The object with an ID, the beginning of an ID, a short name or a file's path. Throws {@link NotFound}, {@link UsageError}. */
export async function objectOf({ options, name: store }: NamedStore, name: string): Promise<string> {
  if (name === '') throw new UsageError('name an object by its ID or path; an empty name was given')
  const found = await named(options, name)
  const [id] = found
  if (id === undefined && /^[0-9a-f]{1,3}$/i.test(name)) throw new UsageError(`${name} is too short for a name; give at least four of its digits`)
  if (id === undefined) throw new NotFound(`${store} has no object ${name}, nor a file ${asStored(resolve(name))}; "search" shows IDs and paths`)
  if (found.length > 1) throw ambiguous(name, found)
  return id
}

/** The same; the name of a session is its conversation. */
export async function shownOf(store: NamedStore, name: string): Promise<string> {
  try {
    return await objectOf(store, name)
  } catch (error) {
    if (!isUnknown(error)) throw error
    const session = await sessionOf(store, name).catch((second: unknown) => {
      // The first error also says where to look for objects.
      throw isUnknown(second) ? error : second
    })
    return `chat:${session}`
  }
}

/** The object with a name, or the session with it. Throws {@link NotFound}, {@link UsageError}. */
export async function objectOrSessionOf(store: NamedStore, name: string): Promise<{ id: string } | { sessionId: string }> {
  const id = await shownOf(store, name)
  const isNamed = id.startsWith('chat:') && !name.startsWith('chat:') && shortName(id) !== name
  return isNamed ? { sessionId: id.slice('chat:'.length) } : { id }
}

/** The same with a version: `ID@TX`. A file's own name may end so. */
export async function versionOf(store: NamedStore, name: string): Promise<{ id: string; tx?: number }> {
  const [, object = '', tx] = /^(.+)@(\d+)$/s.exec(name) ?? []
  if (tx === undefined || (await named(store.options, name)).length > 0) return { id: await shownOf(store, name) }
  return { id: await shownOf(store, object), tx: Number(tx) }
}

/** The session whose ID this is, or begins so. Throws {@link NotFound}, {@link UsageError}. */
export async function sessionOf({ options, name: store }: NamedStore, given: string): Promise<string> {
  let found = (await inStore(options, (store) => store.find(`${SESSION}${given}`))).map((id) => id.slice(SESSION.length))
  // Without the name of its agent, as the agent itself and "replay" show it.
  if (found.length === 0 && !given.includes(':'))
    found = (await inStore(options, (store) => store.sessions())).map(({ id }) => id).filter((id) => isBehindAgent(id, given))
  const [id] = found
  if (given === '' || id === undefined) throw new NotFound(`${store} has no session ${given}; "sessions" lists them`)
  if (found.length > 1) throw ambiguous(given, found)
  return id
}

/** True if a session's ID continues with `given` after the name of its agent. Subagents' conversations do not match. */
export function isBehindAgent(id: string, given: string): boolean {
  const own = /^[a-z-]+:([^:]*)$/.exec(id)?.[1]
  return given !== '' && own?.startsWith(given) === true
}

/** The session that an object belongs to, the newest that has encountered it; undefined if none has. */
export async function ownerOf(options: StoreOptions, id: string): Promise<Owner | undefined> {
  const own = /^(?:session|chat):(.+)$/s.exec(id)?.[1]
  if (own !== undefined) return { session: own, host: await new Hosts().of(own) }
  const found: SessionSummary | null = await inStore(options, (store) => store.sessionOf(id))
  if (found === null) return undefined
  return { session: found.id, host: await new Hosts().of(found.id), ...(found.folder === undefined ? {} : { folder: found.folder }) }
}

/** A session, and the agent that it is of. */
interface Owner {
  session: string
  host: HostName
  folder?: string
}

/** An owner in a line. */
export function ownerLine({ session, host, folder }: Owner): string {
  return `${hostTitle(host)}  session ${session}${folder === undefined ? '' : `  ${folder}`}`
}

/** True if a search found nothing. A name that may be several is another error. */
function isUnknown(error: unknown): boolean {
  return error instanceof NotFound || (error instanceof UsageError && error.message.includes(' is too short for a name'))
}

const SESSION = 'session:'

/** The number of candidates that an error names. */
const NAMED = 5

/** Says that a name may be any of several, and names them. */
export function ambiguous(name: string, found: readonly string[]): UsageError {
  const more = found.length > NAMED ? ', …' : ''
  return new UsageError(`${name} may be ${found.slice(0, NAMED).join(', ')}${more}; give more of it`)
}

async function named(options: StoreOptions, name: string): Promise<string[]> {
  const found = await inStore(options, (store) => store.find(name))
  return found.length > 0 ? found : inStore(options, (store) => store.find(asStored(resolve(name))))
}
