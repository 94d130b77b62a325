/** The command `doctor`. */
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { formsFolder, strayForms } from '../gateway/index.ts'
import type { Stray } from '../gateway/index.ts'
import { contentsOf } from '../inspect/index.ts'
import type { Contents, ObjectSummary } from '../inspect/index.ts'
import type { SecretPlace, StoreOptions } from '../../index.js'
import { defaultFilesystemId, inStore } from '../native/index.ts'
import { enabledParts } from '../enable/index.ts'
import type { EnabledPart } from '../enable/index.ts'
import { DONE, exitHelp } from './exit.ts'
import { counted, countOf, LARGE_BYTES, out, plain, size } from '../ui/index.ts'
import { journalFor, reading, STORE_HELP, unmadeStore } from './store.ts'
import { leftovers, statOf } from '../core/index.ts'
import type { Leftover } from '../core/index.ts'
import { unsentJournals } from './unsent.ts'
import type { Unsent } from './unsent.ts'

export const DOCTOR_HELP = `pi-context-manager doctor [options]

Checks a store: compares every version with the hash it was stored with, shows
how large the store is and what takes up the space, and lists objects that no
session uses. Also names what "enable" added to your files, files with texts
that a killed command left behind, damaged forms of the gateway, and journals of
XTDB databases with unsent writes. Changes nothing.

${STORE_HELP}
  --top N               how many of the largest objects to list (default 10)
  --secrets             instead, look for secrets of known shapes (the rules of
                        gitleaks) in all versions; says where they are, never
                        what they are
  --json                the findings as JSON

${exitHelp('the store is damaged, or --secrets found some', 'done; also before the first session has made a store')}`

/** The findings of the command. */
interface Findings {
  /** Null before the first session. */
  store: string | null
  /** Bytes of the database's files; empty for a node. */
  files: Record<string, number>
  /** The filesystem namespace of this machine's own files; null where each store has a random one. */
  filesystemId: string | null
  /** Files and folders that interrupted commands left on this machine. */
  leftovers: Leftover[]
  /** Problems among the gateway's forms. */
  forms: Stray[]
  /** Other journals of XTDB databases on this machine that have what their databases lack. */
  journals: Unsent[]
  /** The parts that "enable" has added to the user's files. */
  enabled: EnabledPart[]
  damages: { id?: string; txId?: number; what: string }[]
  sessions: number
  byType: Record<string, { objects: number; versions: number; bytes: number }>
  orphans: ObjectSummary[]
  largest: ObjectSummary[]
}

export const DOCTOR_OPTIONS = {
  store: { type: 'string' },
  top: { type: 'string', default: '10' },
  secrets: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** Runs the command; resolves with the exit code. */
export async function doctor(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: DOCTOR_OPTIONS })
  const top = countOf('top', values.top, 10, 0, 100_000)
  const isJson = values.json === true
  const unmade = unmadeStore(values.store)
  if (unmade !== undefined) return nothingYet(unmade, { isJson, isForSecrets: values.secrets === true })
  return reading(values.store, ({ options, name }) => (values.secrets === true ? secrets(options, name, isJson) : check(options, name, top, isJson)))
}

/** Prints what the machine has before the first session has made a store. */
async function nothingYet(path: string, { isJson, isForSecrets }: { isJson: boolean; isForSecrets: boolean }): Promise<number> {
  if (isForSecrets && isJson) {
    out('[]')
    return DONE
  }
  const findings: Findings = {
    store: null,
    files: {},
    filesystemId: defaultFilesystemId(),
    leftovers: leftovers([process.cwd()]),
    forms: [],
    journals: await unsentJournals(undefined),
    enabled: enabledParts(process.env),
    damages: [],
    sessions: 0,
    byType: {},
    orphans: [],
    largest: [],
  }
  if (isJson) out(JSON.stringify(findings, null, 2))
  else {
    out('store      none yet; the first session creates it:')
    out(plain(`           ${path}`))
    if (!isForSecrets) printMachine(findings)
  }
  return DONE
}

async function check(options: StoreOptions, name: string, top: number, isJson: boolean): Promise<number> {
  const damages = await inStore(options, (store) => store.verify())
  // A damaged store can't be read completely, so its contents are left out.
  const contents = damages.length > 0 ? NOTHING : await inStore(options, (store) => contentsOf(store))
  const findings: Findings = {
    store: name,
    files: options.kind === 'sqlite' ? filesOf(name) : {},
    filesystemId: defaultFilesystemId(),
    leftovers: leftovers([...(options.kind === 'sqlite' ? [dirname(name)] : []), process.cwd()]),
    forms: strayForms(formsFolder(options), damages.length > 0 ? undefined : await sessionsOf(options)),
    journals: await unsentJournals(options.kind === 'xtdb' ? journalFor(options) : undefined),
    enabled: enabledParts(process.env),
    damages,
    sessions: contents.sessions,
    byType: byType(contents.objects),
    orphans: contents.orphans,
    largest: [...contents.objects].sort((left, right) => right.bytes - left.bytes).slice(0, top),
  }
  if (isJson) out(JSON.stringify(findings, null, 2))
  else print(findings)
  return damages.length === 0 ? 0 : 1
}

async function secrets(options: StoreOptions, store: string, isJson: boolean): Promise<number> {
  const places = await inStore(options, (store) => store.findSecrets())
  if (isJson) out(JSON.stringify(places, null, 2))
  else if (places.length === 0) out(plain(`${store}: no secrets of known shapes`))
  else {
    for (const place of places) out(secretLine(place))
    const found = `${places.length} ${places.length === 1 ? 'place' : 'places'} with secrets`
    out(plain(`${store}: ${found}. "forget --secrets" erases them; they should be revoked as well`))
  }
  return places.length === 0 ? 0 : 1
}

/** The place of a secret, as a line for people. */
export function secretLine({ id, path, tool, txId, line, rule, count }: SecretPlace): string {
  const where = line === undefined ? 'outside the content' : `line ${line}`
  const many = count === 1 ? '' : `, ${count} different ones`
  return plain(`${id}@${txId}  ${path ?? tool ?? ''}  ${where}  ${rule}${many}`)
}

async function sessionsOf(options: StoreOptions): Promise<Set<string>> {
  return new Set((await inStore(options, (store) => store.sessions())).map(({ id }) => id))
}

const NOTHING: Contents = { objects: [], sessions: 0, orphans: [] }

function filesOf(path: string): Record<string, number> {
  const sizes: Record<string, number> = {}
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const found = statOf(file)
    if (found !== undefined) sizes[file] = found.size
  }
  return sizes
}

function byType(objects: readonly ObjectSummary[]): Findings['byType'] {
  const sums: Findings['byType'] = {}
  for (const { type, versions, bytes } of objects) {
    const sum = (sums[type] ??= { objects: 0, versions: 0, bytes: 0 })
    sum.objects += 1
    sum.versions += versions
    sum.bytes += bytes
  }
  return sums
}

function printEnabled(parts: readonly EnabledPart[]): void {
  for (const [at, { command, path, part }] of parts.entries()) out(plain(`${(at === 0 ? 'enabled' : '').padEnd(11)}${command}: the ${part} in ${path}`))
}

/** The findings outside of a store. */
function printMachine({ filesystemId, leftovers: left, forms, journals, enabled }: Findings): void {
  if (filesystemId !== null) out(`host       filesystem ID ${filesystemId}`)
  printEnabled(enabled)
  if (left.length > 0) {
    out('leftover   interrupted commands left texts of a store outside of it; delete what no running command needs:')
    for (const { path, bytes } of left) out(plain(`           ${size(bytes).padStart(9)}  ${path}`))
  }
  if (forms.length > 0) {
    out(`forms      of what the gateway remembers, ${forms.length === 1 ? 'one file is' : `${forms.length} files are`} not as it should be:`)
    for (const { path, bytes, why } of forms) out(plain(`           ${size(bytes).padStart(9)}  ${path}: ${why}`))
  }
  const [unread, waiting] = [journals.filter((one) => one.unread !== undefined), journals.filter((one) => one.unread === undefined)]
  if (unread.length > 0) {
    out('unread     what waits in these journals is not known:')
    for (const { path, unread: why } of unread) out(plain(`           ${path}: ${why}`))
  }
  if (waiting.length > 0) {
    out('journals   writes wait for databases that no session has opened since; open one with the same nodes, or with the')
    out('           file as its journal:')
    for (const { path, queued } of waiting) out(plain(`           ${counted(queued, 'transaction')} in ${path}`))
  }
}

function print(findings: Findings): void {
  const { store, files, damages, sessions, byType: types, orphans, largest } = findings
  out(plain(`store      ${store}`))
  for (const [file, bytes] of Object.entries(files)) out(plain(`           ${size(bytes).padStart(9)}  ${file}`))
  printMachine(findings)
  if (damages.length === 0) out('integrity  every version matches the hash it was stored with')
  else {
    out(`integrity  ${damages.length} damaged:`)
    for (const { id, txId, what } of damages) out(plain(`           ${id ?? 'outside any version'}${txId === undefined ? '' : ` @${txId}`}: ${what}`))
    out('           Undamaged objects can still be read. Restore the file from a backup, or export single')
    out('           sessions with "export --session ID" and import them into a new store.')
    return
  }
  const used = Object.values(files).reduce((sum, bytes) => sum + bytes, 0)
  if (used >= LARGE_BYTES) out(`size       ${size(used)}: "prune --older-than 90d --dry-run" shows what could be removed, "limits" keeps it small`)
  out(`contents   ${counted(sessions, 'session')}`)
  for (const [type, sum] of Object.entries(types).sort()) {
    out(
      `           ${size(sum.bytes).padStart(9)}  ${counted(sum.objects, type.replace('_', ' ').replace('toolcall', 'tool call'))} in ${counted(sum.versions, 'version')}`,
    )
  }
  if (orphans.length === 0) out('orphans    none: every file and tool call belongs to a session')
  else {
    out(`orphans    ${orphans.length} objects belong to no session (left by a tracker or an import):`)
    for (const { name, bytes } of orphans.slice(0, largest.length)) out(plain(`           ${size(bytes).padStart(9)}  ${name}`))
  }
  out('largest    (text of all versions; the store keeps equal contents only once)')
  for (const { name, versions, bytes } of largest) out(plain(`           ${size(bytes).padStart(9)}  ${name}, ${counted(versions, 'version')}`))
}
