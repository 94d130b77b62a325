/** The commands `sessions`, `search`, `show` and `log`: looking into a store without changing it. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { StoreHit, StoreOptions, Version } from '../../index.js'
import { difference } from '../inspect/difference.ts'
import { native } from '../native.ts'
import { subject, when } from '../inspect/names.ts'
import { paged, shownWhole } from './pager.ts'
import { asStored, STORE_HELP, storeOf } from './store.ts'
import { NotFound, countOf, plain, shown, UsageError } from './terminal.ts'

export const SESSIONS_HELP = `pi-context-manager sessions [options]

Lists the sessions of a store, newest first: when it was last written, turns, folder, first prompt and ID.

${STORE_HELP}
  --project DIR         only sessions that worked in this folder or below it
  --json                the list as JSON

Exit code: 0; 1 if there is none; 2 for an error.`

export const SEARCH_HELP = `pi-context-manager search [options] WORDS

Searches tool outputs and files of all sessions and versions for contents that have all the words, best match
first. "quoted words" are searched as a phrase.

${STORE_HELP}
  --session ID          only what this session has encountered
  --type TYPE           only objects of this type: file or toolcall
  --limit N             at most N hits (default 20)
  --json                the hits as JSON

Exit code: 0 if something was found, 1 if not, 2 for an error.`

export const SHOW_HELP = `pi-context-manager show [options] ID[@TX]

Prints the text of an object: of its newest version, or of the one after transaction TX as "search" and "log"
name it. ID is an object's ID, its beginning if no other begins so, or the path of a file.

${STORE_HELP}
  --json                the whole version as JSON

Exit code: 0; 1 if there is no such object or it has no text; 2 for an error.`

export const LOG_HELP = `pi-context-manager log [options] ID|PATH

Lists the versions of an object, newest first, each with what it changed, like "git log -p".

${STORE_HELP}
  --limit N             at most N versions
  --no-patch            without the differences
  --json                the versions as JSON, one in a line

Exit code: 0; 1 if there is no such object; 2 for an error.`

const STORE = { store: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs `sessions`; resolves with the exit code. */
export async function sessions(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { ...STORE, project: { type: 'string' } } })
  const { options } = storeOf(values.store)
  const below = values.project === undefined ? undefined : asStored(resolve(values.project))
  const all = (await native.listSessions(options)).filter(({ folder }) => isBelow(folder && asStored(folder), below))
  await paged(async (write, paint) => {
    if (values.json === true) return write(shown(JSON.stringify(all, null, 2)))
    for (const { id, turns, lastWritten, folder, firstPrompt } of all) {
      const where = folder === undefined ? '' : `  ${paint.path(folder)}`
      await write(`${paint.dim(when(lastWritten))}  ${String(turns).padStart(4)} ${turns === 1 ? 'turn ' : 'turns'}  ${paint.id(id)}${where}`)
      if (firstPrompt !== undefined) await write(`    ${plain(firstPrompt)}`)
    }
  })
  return all.length === 0 ? 1 : 0
}

/** Whether a folder is the requested one or below it; true for every folder if none is requested. */
export function isBelow(folder: string | undefined, wanted: string | undefined): boolean {
  if (wanted === undefined) return true
  return folder !== undefined && (folder === wanted || folder.startsWith(wanted.endsWith('/') ? wanted : `${wanted}/`))
}

/** Runs `search`; resolves with the exit code. */
export async function search(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { ...STORE, session: { type: 'string' }, type: { type: 'string' }, limit: { type: 'string' } },
    allowPositionals: true,
  })
  if (positionals.length === 0) throw new UsageError('search needs words to look for')
  const { options } = storeOf(values.store)
  const limit = countOf('limit', values.limit, 20, 1, 100_000)
  const hits = await native.searchStore(options, positionals.join(' '), {
    limit,
    ...(values.session === undefined ? {} : { sessionId: values.session }),
    ...(values.type === undefined ? {} : { type: typeOf(values.type) }),
  })
  await paged(async (write, paint) => {
    if (values.json === true) return write(shown(JSON.stringify(hits, null, 2)))
    for (const hit of hits) {
      const place = `${paint.id(`${hit.id}@${hit.txId}`)} ${paint.path(nameOf(hit))}${hit.isLatest ? '' : paint.dim(' (older version)')}`
      await write(`${place}\n    ${paint.dim(`${hit.line}:`)} ${plain(hit.snippet.trim())}`)
    }
  })
  return hits.length === 0 ? 1 : 0
}

function typeOf(text: string): 'file' | 'toolcall' {
  if (text !== 'file' && text !== 'toolcall') throw new UsageError(`--type is file or toolcall, not "${text}"`)
  return text
}

function nameOf({ path, tool, args }: StoreHit): string {
  return path ?? [tool, subject(args)].filter(Boolean).join(' ')
}

/** Runs `show`; resolves with the exit code. */
export async function show(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: STORE, allowPositionals: true })
  const { options, name: store } = storeOf(values.store)
  const { id, tx } = await versionOf(options, only(positionals, 'show'), store)
  const version = await native.readObject(options, id, tx)
  if (version === null) throw new NotFound(`${id} has no version at transaction ${tx}; "log" lists its versions`)
  if (values.json === true) {
    await paged((write) => write(shown(JSON.stringify(version, null, 2))))
    return 0
  }
  const text = version.document.content ?? otherText(version)
  if (text === undefined) throw new NotFound(`${id} has no text${whyOf(version)}`)
  await shownWhole(text)
  return 0
}

/** A chat or session has no text of its own; people see its fields. */
function otherText({ document }: Version): string | undefined {
  if (document.type !== 'chat' && document.type !== 'session') return undefined
  return JSON.stringify(document, null, 2)
}

function whyOf({ document, erased }: Version): string {
  if (erased !== undefined) return `: erased ${when(erased.at)}, ${erased.why}`
  if (document.type !== 'file') return ''
  return document['source_hash'] === null
    ? ': the file was deleted, or only its path is known'
    : ': only the hash of its bytes was recorded, because it is not text, is too large, or was only named by a shell command'
}

/** Runs `log`; resolves with the exit code. */
export async function log(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { ...STORE, limit: { type: 'string' }, 'no-patch': { type: 'boolean' } },
    allowPositionals: true,
  })
  const limit = countOf('limit', values.limit, Number.MAX_SAFE_INTEGER, 1)
  const { options, name: store } = storeOf(values.store)
  const id = await idOf(options, only(positionals, 'log'), store)
  const versions = await native.objectHistory(options, id)
  const first = Math.max(0, versions.length - limit)
  await paged(async (write, paint) => {
    for (let index = versions.length - 1; index >= first; index -= 1) {
      const version = versions[index] as Version
      if (values.json === true) {
        await write(shown(JSON.stringify(version)))
        continue
      }
      await write(`${paint.id(`${id}@${version.txId}`)}  ${when(version.validTime)}  ${sizeOf(version)}`)
      if (values['no-patch'] === true) continue
      // A version of which only the hash was recorded is not an empty file.
      const before = versions.slice(0, index).findLast((one) => !isHashOnly(one))
      for (const line of isHashOnly(version) ? [] : changed(before, version)) {
        const colour = line.startsWith('+') ? paint.added : line.startsWith('-') ? paint.removed : paint.dim
        await write(colour(line))
      }
      await write('')
    }
  })
  return 0
}

function isHashOnly({ document, erased }: Version): boolean {
  return document.type === 'file' && erased === undefined && typeof document.content !== 'string' && document['source_hash'] !== null
}

function sizeOf(version: Version): string {
  const text = version.document.content
  if (version.erased !== undefined) return plain(`erased ${when(version.erased.at)}, ${version.erased.why}`)
  return typeof text === 'string' ? `${Buffer.byteLength(text)} bytes` : `no text${plain(whyOf(version))}`
}

function changed(before: Version | undefined, after: Version): string[] {
  const text = (version: Version | undefined): string => {
    if (version === undefined) return ''
    return typeof version.document.content === 'string' ? version.document.content : (otherText(version) ?? '')
  }
  const now = text(after)
  if (before === undefined) return now === '' ? [] : now.replace(/\n$/, '').split('\n').map((line) => `+${line}`)
  const change = difference(text(before), now)
  return change === '' ? [] : change.split('\n')
}

function only(positionals: readonly string[], command: string): string {
  const [name] = positionals
  if (name === undefined || positionals.length > 1) throw new UsageError(`${command} needs exactly one ID or path`)
  return name
}

/** The object and version that a name stands for. A file's own name may end as a version does. */
async function versionOf(options: StoreOptions, name: string, store: string): Promise<{ id: string; tx?: number }> {
  const [, object = '', tx] = /^(.+)@(\d+)$/s.exec(name) ?? []
  if (tx === undefined || (await named(options, name)).length > 0) return { id: await idOf(options, name, store) }
  return { id: await idOf(options, object, store), tx: Number(tx) }
}

/** The object that a name stands for. */
async function idOf(options: StoreOptions, name: string, store: string): Promise<string> {
  const found = await named(options, name)
  const [id] = found
  if (id === undefined) throw new NotFound(`${store} has no object ${name}; "search" shows IDs`)
  if (found.length > 1) throw new UsageError(`${name} may be ${found.slice(0, 5).join(', ')}${found.length > 5 ? ', …' : ''}`)
  return id
}

/** The objects whose ID, its beginning or path this is. */
async function named(options: StoreOptions, name: string): Promise<string[]> {
  const found = await native.findObjects(options, name)
  return found.length > 0 ? found : native.findObjects(options, resolve(name))
}
