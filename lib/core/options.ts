/** Checks options at run time: a misspelt or impossible one is an error with a sentence, never ignored. */
import type {
  AsOf,
  Forgetting,
  ForgetOptions,
  HistoryPart,
  Part,
  PruneOptions,
  QueryFilter,
  SearchOptions,
  StoreLimits,
  StoreOptions,
  Toolcall,
} from '../../index.js'
import { invalid } from './errors.ts'

/** The names of all fields; the compiler refuses a list that lacks one or has one too many. */
export type Names<T> = Record<keyof T, true>
type Of<Kind extends StoreOptions['kind']> = Extract<StoreOptions, { kind: Kind }>

const STORES: { [Kind in StoreOptions['kind']]: Names<Of<Kind>> } = {
  memory: { kind: true },
  sqlite: { kind: true, path: true, durability: true, readOnly: true },
  xtdb: { kind: true, url: true, urls: true, timeoutMs: true, journal: true, readOnly: true },
}
const TOOLCALL: Names<Toolcall> = {
  id: true,
  tool: true,
  args: true,
  argsDisplay: true,
  content: true,
  status: true,
  fileRefs: true,
  parent: true,
}
const PART: Names<Part> = { lines: true, grep: true }
const AS_OF: Names<AsOf> = { validTime: true, txTime: true, txId: true }
const HISTORY_PART: Names<HistoryPart> = { after: true, limit: true }
const QUERY: Names<QueryFilter> = { type: true, sessionId: true, pathPrefix: true, since: true }
const SEARCH: Names<SearchOptions> = { limit: true, type: true, sessionId: true }
const FORGETTING: Names<Forgetting> = { id: true, path: true, text: true, sessionId: true, secrets: true }
const FORGET: Names<ForgetOptions> = { dryRun: true }
const PRUNE: Names<PruneOptions> = { olderThanDays: true, maxBytes: true, project: true, dryRun: true }
const LIMITS: Names<StoreLimits> = { maxBytes: true, maxDays: true }

/** Checks where a store is. Throws `INVALID_ARGUMENT`. */
export function checkStore(store: StoreOptions): void {
  if (typeof store !== 'object' || store === null) throw invalid("a store is an object such as { kind: 'sqlite', path: '…' }")
  const names = Object.hasOwn(STORES, store.kind) ? STORES[store.kind] : undefined
  if (names === undefined) throw invalid(`the kind of a store is ${listed(Object.keys(STORES), 'or')}, not ${shown(store.kind)}`)
  known(`a store of the kind '${store.kind}'`, store, names)
  if (store.kind === 'memory') return
  if (store.kind === 'sqlite') checkPath(store.path)
  if (store.readOnly !== undefined && typeof store.readOnly !== 'boolean') throw invalid(`store.readOnly is true or false, not ${shown(store.readOnly)}`)
}

export const checkToolcall = (call: Toolcall): void => known('a tool call', call, TOOLCALL)
export const checkPart = (part: Part | null | undefined): void => optional('part', part, PART)
export const checkHistoryPart = (part: HistoryPart | null | undefined): void => optional('part', part, HISTORY_PART)
export const checkAsOf = (at: AsOf | string): void => (typeof at === 'string' ? undefined : known('at', at, AS_OF))
export const checkQuery = (filter: QueryFilter): void => known('filter', filter, QUERY)
export const checkSearch = (options: SearchOptions | null | undefined): void => optional('the options object of search', options, SEARCH)
export const checkPrune = (options: PruneOptions): void => known('the options object of prune', options, PRUNE)
export const checkLimits = (limits: StoreLimits): void => known('the limits object', limits, LIMITS)
export const checkForgetting = (wanted: Forgetting[], options?: ForgetOptions | null): void => {
  optional('the options object of forget', options, FORGET)
  for (const one of list('wanted', wanted)) known('what to forget', one, FORGETTING)
}

/** SQLite would make something else of these than a file with this name. */
function checkPath(path: unknown): void {
  if (typeof path !== 'string' || path === '')
    throw invalid(`store.path must be the path of the database file, and it is ${path === undefined ? 'missing' : shown(path)}`)
  if (path.startsWith(':')) throw invalid(`${path} is not a file; for a store in memory, pass { kind: 'memory' }`)
  if (/^file:/i.test(path)) throw invalid(`store.path must be a plain path and no URL: pass ${shown(path.replace(/^file:(\/\/)?/i, ''))}`)
  if (path.includes('\0')) throw invalid('store.path must not contain a NUL character')
}

function optional(what: string, value: object | null | undefined, names: Record<string, true>): void {
  if (value !== undefined && value !== null) known(what, value, names)
}

/** Throws `INVALID_ARGUMENT` if `value` is not an object, or has a field that `names` lacks. */
export function known(what: string, value: object, names: Record<string, true>): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`${what} must be an object with ${listed(Object.keys(names), 'and')}, not ${shown(value)}`)
  }
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(names, name)) continue
    throw invalid(`${what} has no field ${shown(name)}; it has ${listed(Object.keys(names), 'and')}`)
  }
}

/** The array itself; throws `INVALID_ARGUMENT` for anything else. */
export function list<T>(what: string, value: T[]): T[] {
  if (!Array.isArray(value)) throw invalid(`${what} is an array, not ${shown(value)}`)
  return value
}

/** `a, b and c`. */
export function listed(names: string[], conjunction: string): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${conjunction} ${names.at(-1)}`
}

/** A passed value, for the sentence that refuses it: a text is cut, and the content of an object is left out. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
