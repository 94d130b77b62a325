/** The actions of a user on the page: pin, drop, bring back, look at a text, search. Answers are sentences for people. */
import type { ContextManager } from '../../session/index.ts'
import type { ObjectDocument, Version } from '../../../index.js'
import { headerLine } from '../../lines/index.ts'
import { escape, shortName, subject, tokens } from '../../ui/index.ts'
import type { Conversation } from '../conversation.ts'
import { shownText } from './look.ts'

/** An action on an output. */
export type Action = 'pin' | 'unpin' | 'drop' | 'back'

/** One text of an output. */
export interface PageText {
  label: string
  text: string
}

/** An opened output. */
export interface Opened {
  name: string
  about: string
  texts: PageText[]
}

/** The longest text that the page shows, in UTF-16 units. The store has all of it. */
const LONGEST = 400_000

/** Changes of a file that are shown, the newest ones. */
const MOST_CHANGES = 20

/** The most hits of a search. */
const MOST_HITS = 30

/** Does something to an output of a conversation. */
export async function act(conversation: Conversation, action: Action, id: string): Promise<string> {
  const { manager } = await conversation.session()
  const document = await manager.get(id)
  if (document === null) return 'The session has no such output.'
  const name = nameOf(document)
  switch (action) {
    case 'pin': {
      const change = await manager.pin(id)
      if (!change.ok) return sentence(change.message)
      // A pin alone would keep a reference.
      return isWhole(conversation, document) ? `${name} is pinned: it does not collapse.` : `Pinned. ${await bringBack(conversation, manager, document)}`
    }
    case 'unpin': {
      const change = await manager.unpin(id)
      return change.ok ? `${name} is no longer pinned.` : sentence(change.message)
    }
    case 'drop': {
      const change = await manager.deactivate(id)
      if (!change.ok && change.code !== 'NOT_ACTIVE') return sentence(change.message)
      if ((await manager.sessionSets()).pinnedSet.includes(id)) return `${name} is dropped, but it stays as long as it is pinned.`
      return isWhole(conversation, document) ? `${name} is dropped: it collapses at the next roll.` : `${name} has collapsed already.`
    }
    case 'back':
      return bringBack(conversation, manager, document)
  }
}

/** Adds the text to the end of the next request, where it costs only its own tokens and leaves the cache intact. */
async function bringBack(conversation: Conversation, manager: ContextManager, document: ObjectDocument): Promise<string> {
  const name = nameOf(document)
  if (isWhole(conversation, document)) return `${name} is in the window in full.`
  const change = await manager.activate(document['xt/id'])
  if (!change.ok) return sentence(change.message)
  const text = change.content ?? document.content ?? ''
  const isNew = conversation.tell(`${headerLine(shortName(document['xt/id']))}\n${text}`)
  return isNew ? `${name} goes to the model with the next request.` : `${name} has been brought back already.`
}

function isWhole(conversation: Conversation, document: ObjectDocument): boolean {
  return shownText(conversation, document['xt/id']) === document.content
}

/** Reads the texts of an output: as recorded, as the model sees it, and how its file has changed. */
export async function open(conversation: Conversation, id: string): Promise<Opened> {
  const { manager } = await conversation.session()
  const document = await manager.get(id)
  if (document === null) return { name: id, about: 'The store has no such object.', texts: [] }
  const whole = typeof document.content === 'string' ? document.content : undefined
  const shown = shownText(conversation, document['xt/id'])
  const texts: PageText[] = []
  if (whole !== undefined) texts.push({ label: 'in full, as recorded', text: cut(whole) })
  if (shown !== undefined && shown !== whole) texts.push({ label: 'as the model sees it', text: cut(shown) })
  texts.push(...(await changesOf(manager, document)))
  const size = whole === undefined ? 'no text' : `${tokens(whole.length / 4)} tokens`
  return { name: nameOf(document), about: `${String(document['tool'] ?? document.type)} ${headerLine(shortName(document['xt/id']))}, ${size}`, texts }
}

/** Searches the outputs and files of a conversation's session. */
export async function searchIn(conversation: Conversation, query: string): Promise<string> {
  if (!/[\p{L}\p{N}_]/u.test(query)) return '<p class="dim">Type words to search for.</p>'
  const { manager } = await conversation.session()
  const hits = await manager.search(query, { limit: MOST_HITS, sessionId: conversation.id })
  if (hits.length === 0) return '<p class="dim">No output or file of this session has these words.</p>'
  const rows = hits.map(({ id, path, tool, line, snippet }) => {
    const name = path ?? `${tool ?? 'output'} ${headerLine(shortName(id))}`
    return `<li><button type="button" class="open" data-act="open" data-id="${escape(id)}">${escape(name)}</button> ${line === 0 ? '' : `<span class="dim">line ${line}:</span> `}${escape(snippet.trim())}</li>`
  })
  return `<ul>${rows.join('')}</ul>`
}

async function changesOf(manager: ContextManager, document: ObjectDocument): Promise<PageText[]> {
  const refs = document['file_refs']
  const id = document.type === 'file' ? document['xt/id'] : Array.isArray(refs) && refs.length === 1 ? String(refs[0]) : undefined
  if (id === undefined) return []
  const versions = (await manager.history(id)).filter((version) => typeof version.document.content === 'string').slice(-1 - MOST_CHANGES)
  const changes: PageText[] = []
  for (const [index, after] of versions.entries()) {
    if (index === 0) continue
    const text = await manager.diff(id, (versions[index - 1] as Version).txId, after.txId)
    if (text !== '') changes.unshift({ label: `change of the file, ${after.validTime}`, text: cut(text) })
  }
  return changes
}

function nameOf(document: ObjectDocument): string {
  const path = (document.source as { path?: unknown } | null)?.path
  return typeof path === 'string' ? path : subject(document['args']) || String(document['tool'] ?? document.type)
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters are in the store` : text
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}
