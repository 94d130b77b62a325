/**
 * The way back: an MCP server over HTTP with our tools, stateless and without streams (MCP 2025-03-26 and later,
 * "Streamable HTTP"). It is written here because the SDK is an optional package of a hundred others, and the gateway must
 * work without it.
 */
import { isFields, sentenceOf, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'
import type { RecallInput } from '../projection/index.ts'
import { SERVER_NAME } from './recall-tool.ts'

/** A call of a tool, and what the host says about it. */
export interface ToolCall {
  /** The ID of the model's call, if the host names it. */
  callId: string | undefined
  /** The host's session, if it names it. */
  session: string | undefined
}

/** The functions behind the tools. */
export interface Tools {
  /** A host has asked for the list of tools. */
  listed(): void
  recall(input: RecallInput, call: ToolCall): Promise<string[]>
  search(query: string, call: ToolCall): Promise<string>
}

/** The name of the search tool. */
const SEARCH = 'search'

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

const TOOLS = [
  {
    name: RECALL,
    description: RECALL_DESCRIPTION,
    inputSchema: RECALL_PARAMETERS,
    annotations: READ_ONLY,
    // Claude Code: declare the tool from the start.
    _meta: { 'anthropic/alwaysLoad': true },
  },
  {
    name: SEARCH,
    description: 'Search all tool outputs and files of this session, also those that have collapsed. Each hit has an id for activate.',
    inputSchema: {
      type: 'object',
      properties: { query: { type: 'string', description: 'words; "several words" are searched as a phrase' } },
      required: ['query'],
      additionalProperties: false,
    },
    annotations: READ_ONLY,
    _meta: { 'anthropic/alwaysLoad': true },
  },
]

/** Versions of the protocol that are the same for this server, the newest first. */
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26']

/** Codes of JSON-RPC. */
const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
const NO_METHOD = -32601
const INVALID_PARAMS = -32602

/** The answer to a body: its status, and the message, if there is one. */
export interface McpAnswer {
  status: number
  body?: object
}

/** Answers one message, or a list of them. Never rejects. */
export async function answerMcp(text: string, tools: Tools, version: string): Promise<McpAnswer> {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    return { status: 400, body: failure(null, PARSE_ERROR, 'the body is not JSON') }
  }
  if (!Array.isArray(given)) {
    const one = await answerOne(given, tools, version)
    return one === undefined ? { status: 202 } : { status: 200, body: one }
  }
  const all = await Promise.all(given.map((one) => answerOne(one, tools, version)))
  const answers = all.filter((one) => one !== undefined)
  return answers.length === 0 ? { status: 202 } : { status: 200, body: answers }
}

async function answerOne(message: unknown, tools: Tools, version: string): Promise<object | undefined> {
  if (!isFields(message) || typeof message['method'] !== 'string') {
    // The answer to a request of ours would come like this; there are none.
    if (isFields(message) && ('result' in message || 'error' in message)) return undefined
    return failure(isFields(message) ? message['id'] : null, INVALID_REQUEST, 'not a JSON-RPC request')
  }
  const { id, method } = message
  if (id === undefined) return undefined
  const params = isFields(message['params']) ? message['params'] : {}
  switch (method) {
    case 'initialize': {
      const asked = textOf(params['protocolVersion'])
      const protocolVersion = VERSIONS.includes(asked) ? asked : VERSIONS[0]
      return success(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: SERVER_NAME, title: 'pi-context-manager', version } })
    }
    case 'ping':
      return success(id, {})
    case 'tools/list':
      tools.listed()
      return success(id, { tools: TOOLS })
    case 'tools/call':
      return called(id, params, tools)
    default:
      return failure(id, NO_METHOD, `there is no method ${JSON.stringify(method)}`)
  }
}

async function called(id: unknown, params: Fields, tools: Tools): Promise<object> {
  const { name } = params
  const input = isFields(params['arguments']) ? params['arguments'] : {}
  const call = callerOf(params['_meta'])
  try {
    if (name === RECALL) return success(id, said(...(await tools.recall(input as unknown as RecallInput, call))))
    if (name === SEARCH) return success(id, said(await tools.search(textOf(input['query']), call)))
  } catch (error) {
    return success(id, { ...said(`this can't be brought back now: ${sentenceOf(error)}`), isError: true })
  }
  return failure(id, INVALID_PARAMS, `there is no tool ${JSON.stringify(name)}; there are ${RECALL} and ${SEARCH}`)
}

/** Returns what Claude Code and Codex say about a call. */
function callerOf(meta: unknown): ToolCall {
  const fields = isFields(meta) ? meta : {}
  const callId = textOf(fields['claudecode/toolUseId']) || textOf(fields['callId'])
  const session = textOf(fields['threadId']) || textOf(fields['sessionId'])
  return { callId: callId === '' ? undefined : callId, session: session === '' ? undefined : session }
}

function said(...texts: string[]): { content: object[] } {
  return { content: texts.map((text) => ({ type: 'text', text })) }
}

function success(id: unknown, result: object): object {
  return { jsonrpc: '2.0', id, result }
}

function failure(id: unknown, code: number, message: string): object {
  return { jsonrpc: '2.0', id: id ?? null, error: { code, message } }
}
