/** The files of forms: one for each conversation, with a head that names it and a line for each form. */
import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { placeOf } from '../projection/index.ts'
import type { EditedItem } from '../projection/index.ts'
import { defaultStorePath, denial, isDenial, isFields, isRunning, statOf, UNFINISHED } from '../core/index.ts'
import { LIFETIME_OPTIONS } from '../models/index.ts'
import type { LastChoice } from '../models/index.ts'
import type { StoreOptions } from '../../index.js'
import { isSealed, opened } from './seal.ts'
import type { Sealed, Unsealed } from './seal.ts'
import type { Traces } from './traces.ts'

/** The folder beside a store in which each store has its forms. */
export const FORMS_FOLDER = 'gateway-forms'

/** The number of remembered conversations. The longest unused ones are forgotten. */
const MOST = 500

/** The number of those of one key. All conversations have the same one where a host names none. */
const MOST_OF_KEY = 80

/** Larger files are not ours, in bytes. */
const LARGEST = 64 * 1024 * 1024

const VERSION = 3

/** The names of a form's conversation. */
export interface Named {
  id: string
  cwd: string
  /** The session that it continues. */
  before?: string | undefined
}

/** A form that any process can store. Only a holder of the messages can read it. */
export interface StoredForm {
  /** Parts of the hashes in a chain. */
  links: readonly string[]
  atMs: number
  wasEdited: boolean
  /** The marks of what was said; none before the first answer, and for a session with a name in a file of an earlier version. */
  said: readonly string[]
  /** Its traces; undefined in a file of an earlier version. */
  traces: Traces | undefined
  /** The lifetimes of the cache that it asked for; undefined: the client's own. */
  lifetimes: LastChoice | undefined
  /** The form as a line of a file by itself. */
  line(): WholeLine
  /**
   * The items for the first messages of a conversation with this chain, up to `length` of them; undefined if it is another
   * conversation.
   */
  open(chain: readonly string[], length: number): Unsealed | undefined
}

/** A request that was not the continuation of its conversation: the number of its messages, and the last of its links. */
export type BranchMark = readonly [length: number, link: string]

/** A conversation and its last form. */
export interface Remembered extends Named {
  form: StoredForm
  /** Its forms before its user went back in it, the latest last. If one of these continues as well, there are two conversations. */
  left: readonly StoredForm[]
  /** The branches of which one request is known. The next request tells whether they continue. */
  branches: readonly BranchMark[]
}

/** The number of forms before steps back, and of branches, that are remembered of one conversation. */
export const MOST_BESIDE = 8

/** A line of a file: a form in terms of the one before it. */
export interface Line {
  /** The process that wrote it. Its first line does not build on another one. */
  run: string
  /** The number of items that it takes from the line before, as its first ones. */
  kept: number
  /** The same for the links. */
  linked: number
  items: readonly Sealed[]
  /** Parts of the hashes of the messages that it replaces: entry n represents the first n of them. */
  links: readonly string[]
  /** When it went out, in milliseconds since the epoch. */
  atMs: number
  wasEdited: boolean
  /** The marks of what was said. */
  said?: readonly string[]
  /** The traces behind as many as it takes links from the line before. */
  traces?: Traces
  /** The lifetimes that were asked for, if they were chosen. */
  lifetimes?: LastChoice
  /** The user went back: the form of the line before is one that was left. */
  leaves?: true
}

/** A line that does not build on another one. */
export type WholeLine = Omit<Line, 'run' | 'kept' | 'linked' | 'leaves'>

/** A line that changes only what is known beside the form. */
export interface BesideLine {
  branches: readonly BranchMark[]
}

/** The folder for the gateway's files about a store. */
export function folderBeside(options: StoreOptions): string {
  return options.kind === 'sqlite' ? dirname(options.path) : dirname(defaultStorePath())
}

/** The path of what a store has in a folder beside it, in which other stores may have theirs. */
export function besideStore(options: StoreOptions, folder: string): string {
  return join(folderBeside(options), folder, options.kind === 'sqlite' ? basename(options.path) : short(JSON.stringify(options)))
}

/** The folder of a store's forms. */
export function formsFolder(options: StoreOptions): string {
  return besideStore(options, FORMS_FOLDER)
}

/** The name of a conversation's file. Those of one key have the same beginning. */
export function formFile(key: string, id: string): string {
  return `${short(key)}-${short(id)}.jsonl`
}

/** The first line of a file. */
export function headOf(key: string, named: Named): string {
  return JSON.stringify({ version: VERSION, key, ...named })
}

/** In which state a file is: it changes with each write, by whomever. */
export function stateOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs}`
}

/** The files of a key, the latest last; without one, all. */
export function formFiles(folder: string, key?: string): { name: string; state: string }[] {
  const start = key === undefined ? '' : `${short(key)}-`
  const files = names(folder).filter((name) => name.startsWith(start) && name.endsWith('.jsonl'))
  const stats = files.map((name) => ({ name, stat: statOf(join(folder, name)) }))
  return stats
    .flatMap(({ name, stat }) => (stat?.isFile() === true && stat.size < LARGEST ? [{ name, stat }] : []))
    .toSorted((one, other) => one.stat.mtimeMs - other.stat.mtimeMs)
    .map(({ name, stat }) => ({ name, state: stateOf(stat) }))
}

/** The last form in a file. A line may be torn at the end, and a line of another gateway may stand between two of one. */
export function readForm(path: string, key?: string): Remembered | undefined {
  try {
    const [head, ...lines] = readFileSync(path, 'utf8').split('\n').map(parsed)
    if (!isFields(head) || head['version'] !== VERSION || (key !== undefined && head['key'] !== key)) return undefined
    const runs = new Map<string, Line>()
    let last: Line | undefined
    let left: StoredForm[] = []
    let branches: readonly BranchMark[] = []
    for (const line of lines) {
      // A line that a kill tore was its process's last.
      if (line === undefined) continue
      if (isBeside(line)) {
        branches = line.branches.slice(-MOST_BESIDE)
        continue
      }
      const one = isLine(line) ? joined(line.kept === 0 && line.linked === 0 ? undefined : runs.get(line.run), line) : undefined
      if (one === undefined) {
        // Lines that build on a damaged one are useless as well.
        runs.clear()
        continue
      }
      if (one.leaves === true && last !== undefined) left = [...left, formOf(last)].slice(-MOST_BESIDE)
      last = one
      runs.set(one.run, one)
    }
    if (last === undefined) return undefined
    const { before, id, cwd } = head
    if (typeof id !== 'string' || typeof cwd !== 'string' || (before !== undefined && typeof before !== 'string')) return undefined
    return { id, cwd, ...(before === undefined ? {} : { before }), form: formOf(last), left, branches }
  } catch {
    return undefined
  }
}

function formOf({ items, links, atMs, wasEdited, said = [], traces, lifetimes: noted }: Line): StoredForm {
  const marks = said.length === 0 ? {} : { said }
  const lifetimes = isChoice(noted) ? noted : undefined
  const line = { items, links, atMs, wasEdited, ...marks, ...(traces === undefined ? {} : { traces }), ...(lifetimes === undefined ? {} : { lifetimes }) }
  return { links, atMs, wasEdited, said, traces, lifetimes, line: () => line, open: (chain, length) => opened(items, links.length - 1, chain, length) }
}

function isChoice(value: unknown): value is LastChoice {
  if (!isFields(value)) return false
  const { option, head, conversation, hourUntil } = value
  const isLifetime = (one: unknown): boolean => one === '5m' || one === '1h'
  return LIFETIME_OPTIONS.some((one) => one === option) && isLifetime(head) && isLifetime(conversation) && Number.isInteger(hourUntil)
}

function isBeside(value: unknown): value is BesideLine {
  if (!isFields(value) || !Array.isArray(value['branches']) || 'items' in value) return false
  return value['branches'].every((one: unknown) => Array.isArray(one) && one.length === 2 && Number.isInteger(one[0]) && typeof one[1] === 'string')
}

/** True if a value from a file has the fields of a line. A user may have changed the file by hand. */
function isLine(value: unknown): value is Line {
  if (!isFields(value)) return false
  const { run, kept, linked, items, links, atMs, wasEdited, said = [], traces = [] } = value
  const isCount = (count: unknown): boolean => Number.isInteger(count) && (count as number) >= 0
  return (
    typeof run === 'string' &&
    isCount(kept) &&
    isCount(linked) &&
    Array.isArray(items) &&
    Array.isArray(links) &&
    Number.isFinite(atMs) &&
    typeof wasEdited === 'boolean' &&
    Array.isArray(said) &&
    said.every((mark) => typeof mark === 'string') &&
    Array.isArray(traces)
  )
}

/** The form of a line that follows another one; undefined if the line is corrupt. */
function joined(before: Line | undefined, line: Line): Line | undefined {
  const { kept, linked } = line
  if (kept > (before?.items.length ?? 0) || linked > (before?.links.length ?? 0)) return undefined
  const [items, links] = [
    [...(before?.items.slice(0, kept) ?? []), ...line.items],
    [...(before?.links.slice(0, linked) ?? []), ...line.links],
  ]
  if (!links.every((link) => typeof link === 'string') || !items.every((item) => isSealed(item, links.length - 1))) return undefined
  const places = items.map((item) => placeOf(item as EditedItem)).filter((place) => place !== undefined)
  if (!places.every((place, n) => n === 0 || place > (places[n - 1] as number))) return undefined
  const { traces: added, ...rest } = line
  if (added === undefined) return { ...rest, items, links }
  const traces = [...(before?.traces?.slice(0, linked) ?? []), ...added]
  return traces.length === links.length && traces.every((one) => typeof one === 'string') ? { ...rest, items, links, traces } : undefined
}

/** Forgets forms of a store: all, or those of some sessions. Text that is erased from the store must not stay in them. */
export function forgetForms(options: StoreOptions, sessions?: ReadonlySet<string>): void {
  const folder = formsFolder(options)
  if (sessions === undefined) return rmSync(folder, { recursive: true, force: true })
  for (const { name } of formFiles(folder)) if (sessions.has(readForm(join(folder, name))?.id ?? '')) rmSync(join(folder, name), { force: true })
}

/** A file among the forms that should not be there, or not so. */
export interface Stray {
  path: string
  bytes: number
  why: string
}

/** Returns the problems among a store's forms. `sessions` are those that the store has, if it can be asked. */
export function strayForms(folder: string, sessions?: ReadonlySet<string>): Stray[] {
  const refused = denial(folder)
  if (refused !== undefined) return [{ path: folder, bytes: 0, why: `it can't be read: ${refused}` }]
  return names(folder).flatMap((name) => {
    const path = join(folder, name)
    const stat = statOf(path)
    const why = stat === undefined ? undefined : wrong(path, stat, sessions)
    return stat === undefined || why === undefined ? [] : [{ path, bytes: stat.size, why }]
  })
}

function wrong(path: string, stat: Stats, sessions: ReadonlySet<string> | undefined): string | undefined {
  const writer = UNFINISHED.exec(basename(path))?.[1]
  if (writer !== undefined) return isRunning(Number(writer)) ? undefined : 'a killed gateway left it unfinished; the next one removes it'
  const refused = denial(path)
  if (refused !== undefined) return `it can't be read: ${refused}`
  const form = stat.isFile() && path.endsWith('.jsonl') && stat.size < LARGEST ? readForm(path) : undefined
  if (form === undefined) return 'no form that this version can read; delete it'
  if (isOpen(stat)) return 'others can read it; the next gateway corrects that'
  return sessions?.has(form.id) !== false ? undefined : `of a session that the store does not have (${form.id}); delete it`
}

/** Removes the unfinished files of killed gateways and the longest unused forms, and makes the others readable only by the user. */
export function tidyForms(folder: string): void {
  for (const name of names(folder)) {
    const path = join(folder, name)
    const writer = UNFINISHED.exec(name)?.[1]
    if (writer !== undefined && !isRunning(Number(writer))) unlessRefused(() => rmSync(path, { force: true }))
    else if (isOpen(statOf(path))) unlessRefused(() => chmodSync(path, 0o600))
  }
  const files = formFiles(folder)
  const newer = new Map<string, number>()
  for (const [place, { name }] of files.toReversed().entries()) {
    const key = name.slice(0, name.indexOf('-'))
    const count = newer.get(key) ?? 0
    newer.set(key, count + 1)
    if (place >= MOST || count >= MOST_OF_KEY) unlessRefused(() => rmSync(join(folder, name), { force: true }))
  }
}

/** The files of another user stay: `doctor` names it, and an own form that can't be noted is told. */
function unlessRefused(step: () => void): void {
  try {
    step()
  } catch (error) {
    if (!isDenial(error)) throw error
  }
}

/** Windows has no such modes. */
function isOpen(stat: Stats | undefined): boolean {
  return stat?.isFile() === true && process.platform !== 'win32' && (stat.mode & 0o077) !== 0
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
