/** The commands `sessions`, `search` and `show`: looking into a store without changing it. */
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { SessionSummary, StoreHit, Version } from '../../index.js'
import { inStore, native } from '../native/index.ts'
import { hostTitle, isWithin } from '../core/index.ts'
import type { HostName } from '../core/index.ts'
import { countOf, dollars, NotFound, out, plain, savingText, shortened, shortName, shown, subject, tokens, UsageError, when } from '../ui/index.ts'
import { chatText } from '../inspect/index.ts'
import type { Sum } from '../usage/index.ts'
import { Bills } from './bills.ts'
import { DONE, exitHelp } from './exit.ts'
import { Hosts } from './hosts.ts'
import { ownerLine, ownerOf, sessionOf, versionOf } from './objects.ts'
import { paged, shownWhole } from './pager.ts'
import type { Paint } from './pager.ts'
import { canChoose, chooseSession } from './session-list.ts'
import type { ListedSession } from './session-screen.ts'
import { billsBeside, reading, STORE_HELP } from './store.ts'

export const SESSIONS_HELP = `pi-context-manager sessions [options]

Lists the sessions of a store, newest first: when it was last written, its ID,
its agent, its turns and its folder, then the first prompt. For sessions of Pi
and of the gateway it also says what was paid and what the context manager
saved. In a terminal it is a list to choose from, with a filter; what is chosen
is printed.

${STORE_HELP}
  --project DIR         only sessions that worked in this folder or below it
  --lines               lines in a terminal, too, as in a pipe
  --json                the list as JSON

${exitHelp('there are no sessions')}`

export const SEARCH_HELP = `pi-context-manager search [options] WORDS

Searches tool outputs and files of all sessions and versions for contents that
have all the words, best match first. Words inside double quotes must follow
each other: search '"retry budget" http'.

${STORE_HELP}
  --session ID          only what this session has encountered
  --type TYPE           only objects of this type: file or toolcall
  --limit N             at most N hits (default 20)
  --json                the hits as JSON

${exitHelp('nothing was found')}`

export const SHOW_HELP = `pi-context-manager show [options] ID[@TX]|SESSION

Prints the text of an object: of its newest version, or of the one after
transaction TX as "search" and "log" name it; in a terminal, its agent and its
session first. ID is an object's ID or its short name (673a446c), a beginning of
either that no other object has (four digits of a short name at least), or the
path of a file. SESSION prints a conversation, with the short names of its
outputs.

${STORE_HELP}
  --lines FIRST-LAST    only these lines
  --grep PATTERN        only the lines that match this regular expression (no
                        look-around, no back-references)
  --json                the whole version as JSON

${exitHelp('the object does not exist, it has no text, or no line matches')}`

const STORE = { store: { type: 'string' }, json: { type: 'boolean' } } as const

export const SESSIONS_OPTIONS = { ...STORE, project: { type: 'string' }, lines: { type: 'boolean' } } as const
export const SEARCH_OPTIONS = {
  ...STORE,
  session: { type: 'string' },
  type: { type: 'string' },
  limit: { type: 'string' },
} as const
export const SHOW_OPTIONS = { ...STORE, lines: { type: 'string' }, grep: { type: 'string' } } as const

/** Runs `sessions`; resolves with the exit code. */
export async function sessions(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: SESSIONS_OPTIONS })
  return reading(values.store, async ({ options }) => {
    const listed = await inStore(options, (store) => store.sessions())
    const isWanted = worksIn(values.project)
    const all = listed.filter(({ folder }) => isWanted(folder))
    const bills = await Bills.find(billsBeside(values.store))
    const hosts = new Hosts()
    if (values.json !== true && values.lines !== true && all.length > 0 && canChoose())
      return chosenOf(all, shortened(listed.map(({ id }) => id)), bills, hosts)
    await paged(async (write, paint) => {
      if (values.json === true) return write(shown(JSON.stringify(await withBills(all, bills, hosts), null, 2)))
      const names = shortened(listed.map(({ id }) => id))
      // Bills are read one by one, so the first screen does not wait for all of them.
      for (const session of all) {
        await write(sessionLines(session, names.get(session.id) ?? session.id, await hosts.of(session.id), await bills.of(session.id), paint))
      }
    })
    return all.length === 0 ? 1 : 0
  })
}

/** Shows the list in the terminal, then the chosen session's lines and the commands that tell more of it. */
async function chosenOf(all: readonly SessionSummary[], names: ReadonlyMap<string, string>, bills: Bills, hosts: Hosts): Promise<number> {
  const rows = new Map<ListedSession, SessionSummary>()
  for (const session of all) rows.set(rowOf(session, names.get(session.id) ?? session.id, await hosts.of(session.id)), session)
  const row = await chooseSession([...rows.keys()])
  const session = row === undefined ? undefined : rows.get(row)
  if (row === undefined || session === undefined) return DONE
  out(
    sessionLines(session, row.name, await hosts.of(session.id), await bills.of(session.id), {
      id: plain,
      path: plain,
      dim: plain,
      added: plain,
      removed: plain,
    }),
  )
  out(`\npi-context-manager inspect ${plain(row.name)}\npi-context-manager why ${plain(row.name)}`)
  return DONE
}

function rowOf({ lastWritten, folder = '', turns, objects, firstPrompt = '' }: SessionSummary, name: string, host: HostName): ListedSession {
  return { name, agent: hostTitle(host), at: Date.parse(lastWritten), folder, turns, objects, prompt: firstPrompt }
}

async function withBills(all: readonly SessionSummary[], bills: Bills, hosts: Hosts): Promise<object[]> {
  const list: object[] = []
  for (const session of all) {
    const bill = await bills.of(session.id)
    const host = await hosts.of(session.id)
    list.push(bill === undefined ? { ...session, host } : { ...session, host, cost: bill.cost, saved: bill.saved })
  }
  return list
}

function sessionLines({ turns, lastWritten, folder, firstPrompt }: SessionSummary, name: string, host: HostName, bill: Sum | undefined, paint: Paint): string {
  const where = folder === undefined ? '' : `  ${paint.path(folder, pathToFileURL(folder).href)}`
  const paid = bill === undefined || bill.unpricedCalls + bill.unbilledCalls === bill.calls ? '' : `  ${paidOf(bill)}`
  const line = `${paint.dim(when(lastWritten))}  ${paint.id(name)}  ${hostTitle(host).padEnd(HOST)}  ${String(turns).padStart(4)} ${turns === 1 ? 'turn ' : 'turns'}${paid}${where}`
  return firstPrompt === undefined ? line : `${line}\n    ${plain(firstPrompt)}`
}

/** The payment for a session, and its saving: in dollars, or in tokens on a plan at a flat rate. */
function paidOf({ calls, cost, saved, plan }: Sum): string {
  if (plan.calls === calls) return `on a plan, ${savingText(plan.without - plan.sent, (count) => `${tokens(count)} tokens`)}`
  return `paid ${dollars(cost)}${saved === 0 ? '' : `, ${savingText(saved, dollars)}`}`
}

/** The width of most agents' names. */
const HOST = 11

/** Tells whether a session's folder is a project or below it, with the links of both followed. Without a project, each is. */
export function worksIn(project: string | undefined): (folder: string | undefined) => boolean {
  if (project === undefined) return () => true
  const known = new Map<string, boolean>()
  return (folder) => {
    if (folder === undefined || folder === '') return false
    const works = known.get(folder) ?? isWithin(project, folder)
    known.set(folder, works)
    return works
  }
}

/** Runs `search`; resolves with the exit code. */
export async function search(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: SEARCH_OPTIONS, allowPositionals: true })
  const query = queryOf(positionals.join(' '))
  const limit = countOf('limit', values.limit, 20, 1, 100_000)
  const type = values.type === undefined ? undefined : typeOf(values.type)
  return reading(values.store, async (store) => {
    const wanted = {
      limit,
      ...(values.session === undefined ? {} : { sessionId: await sessionOf(store, values.session) }),
      ...(type === undefined ? {} : { type }),
    }
    const hits = await inStore(store.options, (opened) => opened.search(query, wanted))
    await paged(async (write, paint) => {
      const hosts = new Hosts()
      const withHosts: FoundHit[] = []
      for (const hit of hits) withHosts.push(hit.session === undefined ? hit : { ...hit, host: await hosts.of(hit.session) })
      if (values.json === true) return write(shown(JSON.stringify(withHosts, null, 2)))
      for (const hit of withHosts) await write(hitLines(hit, paint))
    })
    return hits.length === 0 ? 1 : 0
  })
}

/** A hit, with the agent of its session. */
interface FoundHit extends StoreHit {
  host?: HostName
}

function hitLines(hit: FoundHit, paint: Paint): string {
  const link = hit.path === undefined ? undefined : pathToFileURL(hit.path).href
  const older = hit.isLatest ? '' : paint.dim(' (older version)')
  const place = `${paint.id(`${shortName(hit.id)}@${hit.txId}`)} ${paint.path(nameOf(hit), link)}${older}`
  const from = [
    hit.time === undefined ? '' : when(hit.time),
    hit.session === undefined ? '' : `${hostTitle(hit.host ?? 'library')}  session ${hit.session}`,
    hit.folder ?? '',
  ]
  const origin = from.filter((part) => part !== '').join('  ')
  return `${place}\n    ${paint.dim(origin)}\n    ${hit.line === 0 ? '' : paint.dim(`${hit.line}: `)}${plain(hit.snippet.trim())}`
}

/**
 * The query as the store takes it. Parts between spaces are what it searches for, each as adjacent words; so the words of
 * a quoted phrase are joined by something that is neither a word nor a space.
 */
export function queryOf(text: string): string {
  if (!/[\p{L}\p{N}_]/u.test(text)) {
    const given = text.trim() === '' ? 'none was given' : `there is none in ${JSON.stringify(text)}`
    throw new UsageError(`search needs a word, with letters or digits; ${given}`)
  }
  const parts = text.split('"')
  if (parts.length % 2 === 0) throw new UsageError(`a quotation mark has no partner in ${JSON.stringify(text)}; close the phrase, or leave it out`)
  return parts.map((part, index) => (index % 2 === 0 ? part : part.trim().replaceAll(/\s+/g, '.'))).join('')
}

function typeOf(text: string): 'file' | 'toolcall' {
  if (text !== 'file' && text !== 'toolcall') throw new UsageError(`--type is file or toolcall, not "${text}"`)
  return text
}

function nameOf({ path, tool, args }: StoreHit): string {
  return path ?? [tool, subject(args)].filter(Boolean).join(' ')
}

/** The longest part of a text that is shown, in UTF-16 units: all of it. */
const WHOLE = Number.MAX_SAFE_INTEGER

/** Runs `show`; resolves with the exit code. */
export async function show(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: SHOW_OPTIONS, allowPositionals: true })
  const { lines, grep } = values
  if ([lines, grep, values.json].filter((one) => one !== undefined).length > 1) throw new UsageError('show takes one of --lines, --grep and --json')
  const given = only(positionals, 'show')
  return reading(values.store, async (store) => {
    const { id, tx } = await versionOf(store, given)
    const version = await inStore(store.options, (opened) => opened.get(id, tx))
    if (version === null) throw new NotFound(`${given} has no version at transaction ${tx}; "log" lists its versions`)
    if (values.json === true) {
      const owner = await ownerOf(store.options, id)
      await paged((write) => write(shown(JSON.stringify({ ...version, ...owner }, null, 2))))
      return 0
    }
    const text = textOf(version)
    if (text === undefined) throw new NotFound(`${given} has no text${whyOf(version)}`)
    // Whose it is stands before it only where a user reads it: a pipe gets the text, byte for byte.
    const owner = process.stdout.isTTY === true ? await ownerOf(store.options, id) : undefined
    const head = owner === undefined ? undefined : ownerLine(owner)
    if (lines === undefined && grep === undefined) await shownWhole(text, head)
    else {
      const part = await native.textPart(text, lines === undefined ? { grep: grep ?? '' } : { lines }, WHOLE)
      if (part.lines === 0) return 1
      await shownWhole(`${part.text}\n`, head)
    }
    return 0
  })
}

/** Returns the text of a version for people: of a chat what was said and called, of a session its fields. */
export function textOf({ document }: Version): string | undefined {
  if (document.type === 'chat') return chatText(document)
  if (typeof document.content === 'string') return document.content
  if (document.type !== 'session') return undefined
  return JSON.stringify(document, null, 2)
}

/** Why a version has no text, to follow that statement; empty if that is not known. */
export function whyOf({ document, erased }: Version): string {
  if (erased !== undefined) return `: erased ${when(erased.at)}, ${erased.why}`
  if (document.type !== 'file') return ''
  return document['source_hash'] === null
    ? ': the file was deleted, or only its path is known'
    : ': only the hash of its bytes was recorded, because it is not text, is too large, or was only named by a shell command'
}

/** The only argument of a command that takes an object. */
export function only(positionals: readonly string[], command: string): string {
  const [name] = positionals
  if (name === undefined || positionals.length > 1)
    throw new UsageError(`${command} needs one ID or path; ${positionals.length === 0 ? 'none was' : `${positionals.length} were`} given`)
  if (name === '') throw new UsageError(`${command} needs one ID or path; an empty one was given`)
  return name
}
