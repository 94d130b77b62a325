/** The page of a store: its sessions, their turns and rolls, their objects with versions and differences. */
import type { Store } from '../native/index.ts'
import type { ObjectDocument, SessionSets, SessionSummary, Version } from '../../index.js'
import { bounded, changedLines, escape, ROLL_REASONS, shortened, shortName, STYLE, subject, tokens, when } from '../ui/index.ts'
import { idsIn } from './contents.ts'

/** Longer texts are cut on the page; the store has them whole. */
const MAX_TEXT = 12_000

/** Versions of one object whose differences are shown, newest first. */
const MAX_DIFFS = 20

/** Begins the page. */
export function begin(store: string, sessions: readonly SessionSummary[]): string {
  const names = shortened(sessions.map(({ id }) => id))
  const rows = sessions
    .map(({ id, turns, objects, lastWritten, folder = '', firstPrompt = '' }) => {
      // A folder breaks behind its slashes, and elsewhere only if it must.
      const cells = [escape(folder).replaceAll('/', '/<wbr>'), escape(short(firstPrompt))].map(
        (cell) => `<td style="white-space:normal;overflow-wrap:break-word">${cell}</td>`,
      )
      const name = names.get(id) ?? id
      return `<tr${name === id ? '' : ` id="${escape(name)}"`}><td><a href="#${escape(id)}" title="${escape(id)}">${escape(name)}</a></td>${cells.join('')}<td class="n">${turns}</td><td class="n">${objects}</td><td>${escape(when(lastWritten))}</td></tr>`
    })
    .join('')
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Context store</title><style>${STYLE}a{color:var(--pi-context-manager)}</style></head><body><main>
<h1>Context store</h1><p class="dim">${escape(store)}</p>
<div class="scroll"><table><thead><tr><th>session</th><th>folder</th><th>first prompt</th><th class="n">turns</th><th class="n">objects</th><th>last written</th></tr></thead><tbody>${rows}</tbody></table></div>
`
}

/** Ends the page. */
export const END = '</main></body></html>\n'

/** One session, piece by piece: each object's history is in memory only while it is written. */
export async function* sessionParts(store: Store, session: string): AsyncGenerator<string> {
  const sets = setsOf((await store.get(`session:${session}`))?.document)
  const chat = (await store.get(`chat:${session}`))?.document
  yield `<h2 id="${escape(session)}">Session ${escape(session)}</h2>${setsTable(sets)}<h3>Turns and rolls</h3>${turns(chat)}<h3>Files and tool calls, in the order in which the session met them</h3>`
  const active = new Set(sets.activeSet)
  const pinned = new Set(sets.pinnedSet)
  const seen: string[] = []
  for (const id of sets.sessionIndex) {
    const history = await store.history(id)
    const last = history.at(-1)
    if (last === undefined) continue
    if (last.document.type === 'file' && history.every((version) => contentOf(version) === '')) {
      seen.push(title(last.document))
      continue
    }
    const marks = [active.has(id) ? 'active' : '', pinned.has(id) ? 'pinned' : ''].filter((mark) => mark !== '')
    yield `<details><summary>${escape(title(last.document))} <span class="dim">${history.length} version${history.length === 1 ? '' : 's'}${marks.map((mark) => `, ${mark}`).join('')}</span></summary><a id="${shortName(id)}"></a>${facts(last.document)}${versions(history)}</details>\n`
  }
  if (seen.length === 0) return
  const files = `${seen.length} ${seen.length === 1 ? 'file' : 'files'}`
  yield `<details><summary>${files} without content, known by their paths</summary><pre>${escape(cut(seen.join('\n')))}</pre></details>`
}

/** The sets of a session's document; empty where there is none. */
function setsOf(session: ObjectDocument | undefined): SessionSets {
  const list = (name: string): string[] => idsIn(session, name)
  return { sessionIndex: list('session_index'), metadataPool: list('metadata_pool'), activeSet: list('active_set'), pinnedSet: list('pinned_set') }
}

function setsTable(sets: SessionSets): string {
  const { sessionIndex: index, metadataPool: pool, activeSet: active, pinnedSet: pinned } = sets
  return `<p class="dim">${index.length} files and tool calls: ${active.length} active (in full before the model), ${pinned.length} pinned (they never collapse), ${pool.length} in the pool (a line each)</p>`
}

function turns(chat: ObjectDocument | undefined): string {
  const list = Array.isArray(chat?.['turns']) ? (chat['turns'] as Record<string, unknown>[]) : []
  if (list.length === 0) return '<p class="dim">none</p>'
  const rows = list.map((turn, index) => {
    const changes = Array.isArray(turn['rolls']) ? (turn['rolls'] as Record<string, unknown>[]) : []
    // Among them is also what the model was told of files.
    const rolls = changes.filter((one) => one['notices'] === undefined && one['evidence'] === undefined)
    const answers = Array.isArray(turn['assistant']) ? turn['assistant'].length : 0
    const calls = Array.isArray(turn['toolcall_ids']) ? turn['toolcall_ids'].length : 0
    return `<tr><td class="n">${index + 1}</td><td style="white-space:normal">${escape(short(textIn(turn['user'])))}</td><td class="n">${answers}</td><td class="n">${calls}</td><td style="white-space:normal">${escape(rolls.map(rollText).join('; '))}</td></tr>`
  })
  return `<div class="scroll"><table><thead><tr><th class="n">turn</th><th>user</th><th class="n">answers</th><th class="n">tool calls</th><th>rolls</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function rollText(roll: Record<string, unknown>): string {
  if (roll['undone'] === true) return 'undone'
  const { items, removedTokens: removed, reasoningLost, reason } = (roll['receipt'] ?? {}) as Record<string, unknown>
  const size = typeof removed === 'number' ? tokens(removed) : '?'
  const lost = typeof reasoningLost === 'number' ? `, reasoning of ${reasoningLost} ${reasoningLost === 1 ? 'step' : 'steps'} lost` : ''
  return `${items ?? '?'} items, ${size} tokens removed${lost}, ${(ROLL_REASONS as Record<string, string>)[String(reason)] ?? String(reason)}`
}

function versions(history: readonly Version[]): string {
  const first = Math.max(0, history.length - MAX_DIFFS)
  const parts = history.slice(first).map((version, place) => {
    const index = first + place
    const change = index === 0 ? '' : bounded(changedLines(contentOf(history[index - 1] as Version), contentOf(version))).join('\n')
    const lines = change === '' ? '' : `<pre>${escape(cut(change))}</pre>`
    return `<p class="dim">${escape(`@${version.txId}, valid from ${version.validTime}, stored ${version.txTime}`)}</p>${lines}`
  })
  const { document, erased } = history.at(-1) as Version
  const { content } = document
  const none = erased === undefined ? 'no text' : escape(`erased ${erased.at}: ${erased.why}`)
  const text = typeof content === 'string' ? `<pre>${escape(cut(content))}</pre>` : `<p class="dim">${none}</p>`
  return `${parts.join('')}<p class="dim">content of the newest version</p>${text}`
}

function contentOf({ document }: Version): string {
  return typeof document.content === 'string' ? document.content : ''
}

function facts(document: ObjectDocument): string {
  const fields = ['xt/id', 'type', 'tool', 'status', 'char_count', 'source_hash', 'content_hash', 'identity_hash']
  const rows = fields.flatMap((name) =>
    document[name] === undefined || document[name] === null ? [] : [`<tr><td>${name}</td><td>${escape(String(document[name]))}</td></tr>`],
  )
  const args = document['args'] === undefined ? '' : `<pre>${escape(cut(JSON.stringify(document['args'], null, 1)))}</pre>`
  return `<div class="scroll"><table>${rows.join('')}</table></div>${args}`
}

function title(document: ObjectDocument): string {
  if (document.type === 'toolcall')
    return `${String(document['tool'])} ${subject(document['args'])} (${shortName(document['xt/id'])}, ${String(document['status'])})`
  const path = (document.source as { path?: unknown } | null)?.path
  return typeof path === 'string' ? path : document['xt/id']
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((block: { type?: string; text?: string }) => (block.type === 'image' ? '[picture]' : (block.text ?? ''))).join(' ')
}

function short(text: string): string {
  return text.length > 160 ? `${text.slice(0, 159)}…` : text
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n… ${text.length - MAX_TEXT} more characters are in the store` : text
}
