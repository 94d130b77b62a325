/** Model requests of the four formats that the gateway knows, and the parts of them that it looks at. */
import { applied, editOf, geminiField, isEdited, likeness } from '../projection/index.ts'
import { isFields, oncePer, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import type { JsonEdit, EditedItem } from '../projection/index.ts'
import type { CacheLifetime } from '../models/index.ts'
import { native } from '../native/index.ts'
import { isDeferred, recallFacts } from './recall-tool.ts'

/** The format of a request: Anthropic's Messages, OpenAI's Responses or Chat Completions, or Gemini's contents. */
export type Api = 'messages' | 'responses' | 'chat' | 'gemini'

/** A model request whose conversation can be edited. */
export interface ModelRequest {
  api: Api
  /** The parsed body. */
  body: Fields
  /** The conversation: `messages`, `input` of the Responses format, or Gemini's `contents`. */
  messages: object[]
  model: string
  /** Estimated tokens of system prompt and tools (characters / 4). */
  systemTokens: number
  /** True if any tool is declared. */
  hasTools: boolean
  /** True if the model has our tool for bringing outputs back. */
  canRecall: boolean
  /** True if a tool that is called `activate` and nothing else is ours. */
  isPlainRecall: boolean
  /** The provider has refused the field that asks it to drop reasoning. */
  cannotAsk?: true
  /** The field of what is sent that has the body; absent where the body itself is sent. */
  envelope?: 'request'
  /** The lifetime of the conversation at the provider, if its markers ask for another one. */
  lifetime?: CacheLifetime
}

/** The format of a request with this path. */
export function apiOf(path: string): Api | undefined {
  const route = path.split('?')[0] ?? ''
  if (/(?:^|\/)v1\/messages$/.test(route)) return 'messages'
  if (route.endsWith('/responses')) return 'responses'
  if (GENERATE.test(route) || CODE_ASSIST.test(route)) return 'gemini'
  return route.endsWith('/chat/completions') ? 'chat' : undefined
}

/** Gemini's address of a model, on Google's API and on Vertex. Requests that only count tokens are others. */
const GENERATE = /\/models\/([^/:]+):(?:generateContent|streamGenerateContent)$/

/** The address where a login with Google leads (Code Assist). The model is in the body, and Gemini's request is a field of it. */
const CODE_ASSIST = /\/v1internal:(?:generateContent|streamGenerateContent)$/

/**
 * Reads a body that goes to an address. `isConnected`: a host has asked our MCP server for its tools. Undefined if its conversation is not in it as a list: a text as the whole input, or a continuation of what
 * only the provider has. Such a request passes as it is.
 */
export function readRequest(api: Api, given: unknown, isConnected = false, path = ''): ModelRequest | undefined {
  const envelope = CODE_ASSIST.test(path) ? 'request' : undefined
  const body = isFields(given) && envelope !== undefined ? given[envelope] : given
  if (!isFields(given) || !isFields(body)) return undefined
  const messages = body[listOfApi(api)]
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isFields)) return undefined
  if (api === 'responses' && (isSet(body['previous_response_id']) || isSet(body['conversation']))) return undefined
  if (isFields(body['thread']) && body['thread']['type'] === 'continue') return undefined
  const list = api === 'messages' ? messages.map(inBlocks) : messages
  const declared = listOf(body['tools']).flatMap((tool) => {
    const list = isFields(tool) ? geminiField(tool, 'functionDeclarations') : undefined
    return Array.isArray(list) ? list : [tool]
  })
  const tools = [...declared, ...messages.flatMap((message: Fields) => (message['type'] === 'additional_tools' ? listOf(message['tools']) : []))]
  const loaded = messages.flatMap((message: Fields) => (message['type'] === 'tool_search_output' ? listOf(message['tools']) : []))
  const recall = recallFacts([...tools, ...loaded], () => beforeAnswers(body, messages), isConnected)
  return {
    api,
    body,
    messages: list,
    model: api === 'gemini' && envelope === undefined ? decodeURIComponent(GENERATE.exec(path)?.[1] ?? '') : textOf(given['model']),
    ...(envelope !== undefined && { envelope }),
    systemTokens: Math.ceil(
      (sizeOf(body['system']) + sizeOf(body['instructions']) + sizeOf(geminiField(body, 'systemInstruction')) + sizeOf(loadedOf(tools, messages))) / 4,
    ),
    hasTools: tools.length > 0,
    canRecall: recall.isDeclared || (recall.isDeferred && isConnected),
    isPlainRecall: recall.isPlain,
  }
}

/** The field of a body that has the conversation. */
export function listOfApi(api: Api): 'input' | 'messages' | 'contents' {
  return api === 'responses' ? 'input' : api === 'gemini' ? 'contents' : 'messages'
}

/** A message with its text as a block: Claude Code writes the same message in either way, depending on its cache marker. */
function inBlocks(message: Fields): Fields {
  const { content } = message
  return typeof content !== 'string' || content === '' ? message : textInBlock(message)
}

const textInBlock = oncePer<Fields, Fields>((message) => ({ ...message, content: [{ type: 'text', text: message['content'] }] }))

/**
 * Lets messages that are as they were in an earlier request be the same objects: they are held once, the garbage
 * collector need not copy them, and a comparison sees at once that they are the same.
 */
export function share({ api, body, messages }: ModelRequest, before: readonly object[], common: number): void {
  const own = body[listOfApi(api)] as unknown[]
  for (let at = 0; at < common; at += 1) {
    const one = before[at] as object
    if (likeness(one, messages[at]) !== 'same') continue
    if (own[at] === messages[at]) own[at] = one
    messages[at] = one
  }
}

/** The edit of the body that makes its conversation go out in another form. Everything else keeps its place and value. */
export function listEdit({ api, body, messages }: ModelRequest, items: readonly EditedItem[]): JsonEdit {
  const name = listOfApi(api)
  const own = body[name] as readonly unknown[]
  const ofOwn = items.map((item): EditedItem => {
    if (!isEdited(item) || own[item[0]] === messages[item[0]]) return item
    return [item[0], editOf(own[item[0]], applied(messages[item[0]], item[1])) as JsonEdit]
  })
  return { fields: { [name]: { items: ofOwn } } }
}

/** An edit of a body's fields. */
type FieldsEdit = Extract<JsonEdit, { fields: unknown }>

/** An edit of a request's body as one of what is sent. */
export function inEnvelope({ envelope }: ModelRequest, edit: FieldsEdit): FieldsEdit {
  return envelope === undefined ? edit : { fields: { [envelope]: edit } }
}

/**
 * The texts in which a host may list tools that can be loaded: the system prompt, and what stands before the first answer.
 * Results are none of them, nor what a model says.
 */
function beforeAnswers(body: Fields, messages: readonly Fields[]): string[] {
  const answer = messages.findIndex(isAnswer)
  const first = messages.slice(0, Math.min(answer < 0 ? messages.length : answer, MOST_FIRST))
  return [...systemsOf(body), ...first.map(({ content, parts }) => content ?? parts)].flatMap(textsIn)
}

/** True if a message is of the model, or the result of a call. */
export function isAnswer(message: object): boolean {
  const { role, type } = message as Fields
  return role === 'assistant' || role === 'model' || role === 'tool' || /_(?:call|output)$/.test(textOf(type))
}

/** True if a message is what a user has said, and no tool's output. */
export function isUsers(message: object | undefined): boolean {
  const { role, content, parts } = message as Fields
  const blocks = [content, parts].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
  return role === 'user' && !blocks.some((block) => isFields(block) && (block['type'] === 'tool_result' || isFields(geminiField(block, 'functionResponse'))))
}

/** The largest number of a host's messages before the first answer. */
const MOST_FIRST = 16

/** The texts of a content, without those of results. */
function textsIn(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  return listOf(content).flatMap((block) => (isFields(block) && typeof block['text'] === 'string' ? [block['text']] : []))
}

/** The folder that the agent says it works in, if it says so: in its system prompt, or in what it puts before the first answer. */
export function folderOf({ body, messages }: ModelRequest): string | undefined {
  for (const text of beforeAnswers(body, messages as Fields[])) {
    const found = FOLDER.exec(text)
    const path = found?.[1] ?? found?.[2]
    if (path !== undefined) return path
  }
  return undefined
}

/** As Claude Code, OpenCode, Codex and others write it, in plain text or in JSON. */
const FOLDER = /<cwd>(\/[^<\\"\n]+)<\/cwd>|[Ww]orking directory(?: is)?:\s*`?(\/[^\\"`\n]+?)`?(?:\\n|\n|"|$)/

/** The first words that a user has said, without what hosts put around them. Identifies a conversation for people. */
export function firstPrompt({ messages }: Pick<ModelRequest, 'messages'>): string {
  const texts = (messages as Fields[]).slice(0, MOST_FIRST).flatMap(({ role, parts, content = parts }) => (role === 'user' ? textsIn(content) : []))
  return native.firstWords(texts) ?? ''
}

/** The system prompt of a request, in whatever places its format has it; empty if there is none. */
export function systemText({ body, messages }: ModelRequest): string {
  const inList = (messages as Fields[]).slice(0, MOST_FIRST).filter(({ role }) => role === 'system' || role === 'developer')
  return [...systemsOf(body), ...inList.map(({ content }) => content)].flatMap(textsIn).join('\n')
}

/** The fields in which the formats have the system prompt. */
function systemsOf(body: Fields): unknown[] {
  const gemini = geminiField(body, 'systemInstruction')
  return [body['system'], body['instructions'], isFields(gemini) ? gemini['parts'] : gemini]
}

/** The tools whose definitions the model has: all but those that are loaded later, and of these the ones that a result refers to. */
function loadedOf(tools: readonly unknown[], messages: readonly Fields[]): unknown[] {
  if (!tools.some(isDeferred)) return [...tools]
  const found = new Set(messages.flatMap(({ content }) => listOf(content).flatMap(referencesIn)))
  return tools.filter((tool) => !isDeferred(tool) || found.has(isFields(tool) ? tool['name'] : undefined))
}

/** The names of the tools that a result of Anthropic's refers to. */
function referencesIn(block: unknown): unknown[] {
  if (!isFields(block) || !textOf(block['type']).endsWith('tool_result')) return []
  const { content } = block
  const list = isFields(content) ? listOf(content['tool_references']) : listOf(content)
  return list.flatMap((one) => (isFields(one) && one['type'] === 'tool_reference' ? [one['tool_name']] : []))
}

function sizeOf(value: unknown): number {
  return value === undefined ? 0 : (JSON.stringify(value)?.length ?? 0)
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}
