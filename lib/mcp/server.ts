/** The read-only MCP server: search, show, log and sessions. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { ObjectDocument, StoreHit } from '../../index.js'
import { invalid } from '../core/index.ts'
import { hitLine } from '../lines/index.ts'
import { native } from '../native/index.ts'
import type { Store } from '../native/index.ts'
import { shortName } from '../ui/index.ts'
import type { LimitedStore } from './store.ts'

/** The default and the maximum number of search hits. */
const HITS = { usual: 20, most: 100 }

/** The longest text in one answer, in UTF-16 units. */
const MAX_TEXT = 64 * 1024

const SESSION = { session: { type: 'string', description: 'only this session' } }

const TOOLS = [
  {
    name: 'sessions',
    description: 'The sessions that this server shows, with their turns, objects and time of the last write.',
    inputSchema: { type: 'object' as const, properties: {} },
  },
  {
    name: 'search',
    description: 'Full-text search in all versions of tool outputs and files. Each hit has an id.',
    inputSchema: {
      type: 'object' as const,
      properties: { query: { type: 'string' }, ...SESSION, limit: { type: 'integer', minimum: 1, maximum: HITS.most } },
      required: ['query'],
    },
  },
  {
    name: 'show',
    description: 'The text of a tool output or file by its id: all of it, a range of lines, or the lines that match.',
    inputSchema: {
      type: 'object' as const,
      properties: {
        id: { type: 'string', description: 'as shown by search and log' },
        ...SESSION,
        lines: { type: 'string', description: 'e.g. "120-180"' },
        grep: { type: 'string', description: 'regular expression' },
      },
      required: ['id'],
    },
  },
  {
    name: 'log',
    description: 'Without an id: the turns of a session, with its prompts and tool calls. With one: the versions of an object.',
    inputSchema: { type: 'object' as const, properties: { id: { type: 'string' }, ...SESSION } },
  },
].map((tool) => ({ ...tool, annotations: { readOnlyHint: true, openWorldHint: false } }))

/** Creates the server for a store. Connect it to a transport. */
export function serverOf(store: LimitedStore, version: string): Server {
  const server = new Server({ name: 'pi-context-manager', version }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    try {
      return { content: [{ type: 'text', text: await answer(store, params.name, params.arguments ?? {}) }] }
    } catch (error) {
      const { code } = error as { code?: unknown }
      const message = error instanceof Error ? error.message : String(error)
      return { content: [{ type: 'text', text: typeof code === 'string' ? `${message} (${code})` : message }], isError: true }
    }
  })
  return server
}

async function answer(limited: LimitedStore, name: string, input: Record<string, unknown>): Promise<string> {
  const session = textOf(input, 'session')
  switch (name) {
    case 'sessions':
      return limited.read(undefined, async (store, sessions) => lines(await Promise.all(sessions.map((one) => summary(store, one))), 'no session yet'))
    case 'search':
      return limited.read(session, (store, sessions) => search({ limited, store, sessions }, required(input, 'query'), limitOf(input['limit'])))
    case 'show':
      return limited.read(session, (store, sessions) =>
        show({ limited, store, sessions }, required(input, 'id'), textOf(input, 'lines'), textOf(input, 'grep')),
      )
    case 'log': {
      const id = textOf(input, 'id')
      return limited.read(session, (store, sessions) => (id === undefined ? turnsOf(store, sessions) : versionsOf({ limited, store, sessions }, id)))
    }
    default:
      throw invalid(`unknown tool "${name}"; there are sessions, search, show and log`)
  }
}

/** The source of one answer: the open store, and those of its sessions that may be shown. */
interface Shown {
  limited: LimitedStore
  store: Store
  sessions: readonly string[]
}

async function summary(store: Store, session: string): Promise<string> {
  const found = await store.get(`session:${session}`)
  const chat = await store.get(`chat:${session}`)
  const objects = listIn(found?.document, 'session_index').length
  return `${found?.validTime ?? '-'}  ${Number(chat?.document['turn_count'] ?? 0)} turns  ${objects} objects  ${oneLine(session)}`
}

async function search({ limited, store, sessions }: Shown, query: string, limit: number): Promise<string> {
  const found: string[] = []
  let damaged = 0
  for (const sessionId of sessions) {
    for (const hit of await store.search(query, { limit: HITS.most, sessionId })) {
      const document = await documentOf(store, hit.id)
      if (document === null) damaged += 1
      if (document != null && limited.shows(document)) found.push(`session=${oneLine(sessionId)} ${lineOf(asSeen(limited, hit, document))}`)
    }
  }
  // Nothing says whether what can't be read may be shown.
  const told = damaged === 0 ? [] : [`${damaged === 1 ? 'One text that may have these words is' : `${damaged} texts that may have these words are`} damaged`]
  return lines([...found.slice(0, limit), ...told], 'no match')
}

/** The latest version of an object; null where it is damaged. */
async function documentOf(store: Store, id: string): Promise<ObjectDocument | null | undefined> {
  try {
    return (await store.get(id))?.document
  } catch (error) {
    if ((error as { code?: string }).code === 'STORE_CORRUPT') return null
    throw error
  }
}

/** A hit with the path by which the client knows its file. */
function asSeen({ reach }: LimitedStore, hit: StoreHit, document: ObjectDocument): StoreHit {
  if (reach.isThisMachine || hit.path === undefined) return hit
  const path = reach.pathOf(document)
  return path === undefined ? { ...hit, isOrphaned: true } : { ...hit, path, isOrphaned: false }
}

function lineOf({ id, txId, isLatest, type, path, isOrphaned, tool, line, snippet }: StoreHit): string {
  const object = path !== undefined ? { path, ...(isOrphaned === undefined ? {} : { isOrphaned }) } : tool !== undefined ? { tool } : { type }
  return hitLine({ id: shortName(id), ...(isLatest ? {} : { txId }), ...object, line, snippet })
}

async function show(shown: Shown, id: string, range: string | undefined, grep: string | undefined): Promise<string> {
  const document = await find(shown, id)
  if (typeof document.content !== 'string') return 'this object has no text'
  if (range === undefined && grep === undefined) return cut(document.content)
  if (range !== undefined && grep !== undefined) throw invalid('give either lines or grep, not both')
  const part = range === undefined ? { grep: grep ?? '' } : { lines: range }
  const { text, lines: count } = await native.textPart(document.content, part, MAX_TEXT)
  return count === 0 ? 'no line matches' : text
}

async function versionsOf(shown: Shown, id: string): Promise<string> {
  const document = await find(shown, id)
  const versions = await shown.store.history(document['xt/id'])
  return lines(
    versions.map(({ document: one, validTime }) => {
      const size = typeof one.content === 'string' ? `${Buffer.byteLength(one.content)} bytes` : 'no text'
      return `${validTime}  ${size}  sha256=${one.source_hash ?? one.content_hash}`
    }),
    'no version',
  )
}

async function turnsOf(store: Store, sessions: readonly string[]): Promise<string> {
  const found: string[] = []
  for (const session of sessions) {
    const chat = (await store.get(`chat:${session}`))?.document
    for (const [number, turn] of ((chat?.['turns'] ?? []) as { user: unknown; toolcall_ids: string[] }[]).entries()) {
      found.push(`session=${oneLine(session)} turn=${number + 1} ${oneLine(promptOf(turn.user)).slice(0, 200)}`)
      for (const id of turn.toolcall_ids) {
        const call = (await store.get(id))?.document
        if (call !== undefined) found.push(`  id=${oneLine(id)} tool=${oneLine(String(call['tool']))} status=${String(call['status'])}`)
      }
    }
  }
  return cut(lines(found, 'no turn yet'))
}

/** Finds an object of the sessions by its ID, the beginning of its ID, or its short name. Objects that may not be shown don't exist here. */
async function find({ limited, store, sessions }: Shown, name: string): Promise<ObjectDocument> {
  for (const session of sessions) {
    for (const id of await store.find(name, session)) {
      const document = (await store.get(id))?.document
      if (document !== undefined && limited.shows(document)) return document
    }
  }
  throw Object.assign(new Error(`this server shows no object ${JSON.stringify(name)}; use an id from search or log`), { code: 'UNKNOWN_OBJECT' })
}

function listIn(document: ObjectDocument | undefined, field: string): unknown[] {
  return Array.isArray(document?.[field]) ? document[field] : []
}

function promptOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((block: { text?: unknown }) => (typeof block?.text === 'string' ? block.text : '')).join(' ') : ''
}

/** Removes line breaks, so that text from outside can't forge one of our lines. */
function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, ' ')
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}\n... ${text.length - MAX_TEXT} more characters; ask for a range of lines`
}

function lines(list: readonly string[], none: string): string {
  return list.length === 0 ? none : list.join('\n')
}

function textOf(input: Record<string, unknown>, name: string): string | undefined {
  const value = input[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw invalid(`${name} must be a string`)
  return value
}

function required(input: Record<string, unknown>, name: string): string {
  const text = textOf(input, name)
  if (text === undefined) throw invalid(`${name} is missing`)
  return text
}

function limitOf(value: unknown): number {
  if (value === undefined) return HITS.usual
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > HITS.most) throw invalid(`limit must be an integer from 1 to ${HITS.most}`)
  return value
}
