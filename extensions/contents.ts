/** The texts that the viewer of `/context` shows of an output: as recorded, as the model sees it, and how its file changed. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { ContextManager, ObjectDocument, Version } from '../index.js'
import { bounded, dollars } from '../lib/ui/index.ts'
import type { Host } from './host.ts'
import type { Output } from './outputs.ts'
import type { Report } from './report.ts'
import { headerOf, referenceOf } from '../lib/lines/index.ts'
import { textOf } from './results.ts'
import { short } from './shares.ts'

/** One text of an output. */
export interface Text {
  /** Its name, for the title. */
  label: string
  /** The text itself; lines end with `\n`. */
  text: string
}

/** An opened output. */
export interface StateContents {
  /** Its name, whole and on one line. */
  name: string
  /** Tool, id, size, and what bringing it back costs. */
  about: string
  /** The texts between which the viewer switches; at least one. */
  texts: Text[]
}

/** Differences between versions that the viewer offers at most, the newest ones. */
const MOST_CHANGES = 20

/**
 * Reads the texts of an output. Rejects with a sentence for the user if the store has none of it.
 */
export async function contentsOf(host: Host, ctx: ExtensionContext, row: Output, report: Report): Promise<StateContents> {
  const manager = host.manager()
  const document = await manager.get(row.id)
  if (document === null) throw new Error(`The store has no object with the id ${row.id}.`)
  const recorded = typeof document.content === 'string' ? document.content : undefined
  const shown = shownText(ctx, row.id, document['xt/id'])
  const texts: Text[] = []
  if (recorded !== undefined) texts.push({ label: 'in full, as recorded', text: recorded })
  if (shown !== undefined && row.form !== 'full') texts.push({ label: `as the model sees it (${row.form})`, text: shown })
  texts.push(...(await changesOf(manager, document)))
  if (texts.length === 0) throw new Error(`Nothing is recorded of ${row.name}: it has no text.`)
  return { name: row.name, about: aboutOf(row, report, recorded), texts }
}

function aboutOf(row: Output, report: Report, recorded: string | undefined): string {
  const facts = [`${row.tool} id=${row.id}${row.failed ? ', failed' : ''}`]
  if (recorded !== undefined) {
    const lines = recorded === '' ? 0 : recorded.split('\n').length - (recorded.endsWith('\n') ? 1 : 0)
    const count = `${lines} ${lines === 1 ? 'line' : 'lines'}`
    const tokens = recorded.length * report.perCharacter
    if (row.form === 'full') facts.push(`${count}, ${short(tokens)} tokens`)
    else facts.push(count, costOf(tokens, report.tokenPrice))
  }
  return facts.join('; ')
}

function costOf(tokens: number, tokenPrice: number): string {
  // Less than half a cent is not told.
  const price = tokens * tokenPrice >= 0.005 ? ` (${dollars(tokens * tokenPrice)})` : ''
  return `bringing it back adds ${short(tokens)} tokens${price}`
}

/** The text of an output in the conversation as it is now; undefined if it is not there. */
function shownText(ctx: ExtensionContext, id: string, callId: string): string | undefined {
  const { entries } = ctx.sessionManager.buildSessionProjection()
  for (const message of entries.toReversed().flatMap((entry) => entry.messages)) {
    if (message.role !== 'toolResult') continue
    const text = textOf(message.content)
    if ((referenceOf(text)?.id ?? headerOf(text)?.id ?? message.toolCallId) === id) return text
    if (message.toolCallId === callId) return text
  }
  return undefined
}

/** The changes of the call's file, if the call is about one file; the newest first. */
async function changesOf(manager: ContextManager, document: ObjectDocument): Promise<Text[]> {
  const id = fileOf(document)
  if (id === undefined) return []
  const versions = (await manager.history(id)).filter((version) => typeof version.document.content === 'string')
  const pairs = versions.slice(1).map((after, index): [Version, Version] => [versions[index] as Version, after])
  const changes: Text[] = []
  for (const [before, after] of pairs.slice(-MOST_CHANGES).reverse()) {
    const text = await manager.diff(id, before.txId, after.txId)
    if (text !== '') changes.push({ label: `change of the file, ${timeOf(after.validTime)}`, text: bounded(text.split('\n')).join('\n') })
  }
  return changes
}

function fileOf(document: ObjectDocument): string | undefined {
  if (document.type === 'file') return document['xt/id']
  const refs = document['file_refs']
  return Array.isArray(refs) && refs.length === 1 && typeof refs[0] === 'string' ? refs[0] : undefined
}

/** A time in the user's zone, to the second. */
function timeOf(rfc3339: string): string {
  const at = new Date(rfc3339)
  return Number.isNaN(at.getTime()) ? rfc3339 : at.toLocaleString('sv-SE')
}
