/**
 * Whether a model has our tool for bringing outputs back. That is known, never guessed: from the exact names that hosts give
 * to the tools of our server, from the tool's own definition, and from what our server was asked. Names of others that look
 * alike, and texts of users, files and tools, decide nothing.
 */
import { isFields, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'

/** The name under which hosts know our MCP server. */
export const SERVER_NAME = 'context'

/** Hosts that write a server's tools under one name: Claude Code, Qwen Code and Kimi; Gemini CLI and Crush; Goose and Cline; OpenCode and Kilo; Copilot. */
const PREFIXES = [`mcp__${SERVER_NAME}__`, `mcp_${SERVER_NAME}_`, `${SERVER_NAME}__`, `${SERVER_NAME}_`, `${SERVER_NAME}-`]

const QUALIFIED: ReadonlySet<string> = new Set(PREFIXES.map((prefix) => `${prefix}${RECALL}`))

/** Namespaces in which a host declares the tools of our server: Codex, and the plain name. */
const NAMESPACES: ReadonlySet<string> = new Set([SERVER_NAME, `mcp__${SERVER_NAME}`, `mcp__${SERVER_NAME}__`])

/** Tools with which a model loads others that are not declared yet: Codex and Qwen Code, Claude Code. */
const LOADERS: ReadonlySet<string> = new Set(['tool_search', 'ToolSearch'])

/** The names of our server where a host lists what can be loaded: of one of its tools, or of the server. */
const LISTED = new RegExp(`(?<![\\w-])mcp__${SERVER_NAME}(?:__(?:${RECALL}|search)?)?(?![\\w-])`)

/** The same where Codex lists the servers themselves. */
const SOURCE = new RegExp(`^- ${SERVER_NAME}(?::|$)`, 'm')

/** A request's facts about our tool. */
export interface RecallFacts {
  /** The model can call it now. */
  isDeclared: boolean
  /** It is among the tools that the model can load, if the host has our server at all. */
  isDeferred: boolean
  /** A tool that is called {@link RECALL} and nothing else is ours. */
  isPlain: boolean
}

/** Reads the facts from the declared tools and the messages before the first answer. `isConnected`: a host has asked our server for its tools. */
export function recallFacts(declared: readonly unknown[], texts: () => readonly string[], isConnected: boolean): RecallFacts {
  const loads = declared.find(isLoader)
  // A tool that is to be loaded later is as good as absent where nothing loads it.
  const tools = loads === undefined ? declared.filter((tool) => !isDeferred(tool)) : declared
  const isPlain = tools.some((tool) => isFields(tool) && nameOf(tool) === RECALL && isOurs(tool, isConnected))
  const isDeclared = isPlain || tools.some((tool) => isRecall(tool, ''))
  const loader = isDeclared ? undefined : loads
  const isListed = isFields(loader) && (SOURCE.test(textOf(loader['description'])) || texts().some((text) => LISTED.test(text)))
  return { isDeclared, isDeferred: isListed, isPlain }
}

/** True if a tool's definition is not part of the prompt until the model has looked it up. */
export function isDeferred(tool: unknown): boolean {
  return isFields(tool) && tool['defer_loading'] === true
}

/** True if a tool loads others: the host's own, or Anthropic's and OpenAI's. */
function isLoader(tool: unknown): boolean {
  return isFields(tool) && (LOADERS.has(nameOf(tool)) || /^tool_search(?:_tool_|$)/.test(textOf(tool['type'])))
}

/** True if a call is one of our tool. `namespace` is the host's; `isPlain` as in {@link RecallFacts}. */
export function isRecallCall(name: string, namespace: string, isPlain: boolean): boolean {
  if (namespace !== '') return NAMESPACES.has(namespace) && (name === RECALL || QUALIFIED.has(name))
  return QUALIFIED.has(name) || (isPlain && name === RECALL)
}

/** True if a tool, or one in its namespace, is ours by its exact name. */
function isRecall(tool: unknown, namespace: string): boolean {
  if (!isFields(tool)) return false
  const name = nameOf(tool)
  if (Array.isArray(tool['tools'])) return tool['tools'].some((one) => isRecall(one, name))
  return isRecallCall(name, namespace, false)
}

function nameOf(tool: Fields): string {
  return textOf(tool['name']) || (isFields(tool['function']) ? textOf(tool['function']['name']) : '')
}

/** True if a tool of the plain name is ours by its definition. One that says nothing about itself is if a host has asked our server. */
function isOurs(tool: Fields, isConnected: boolean): boolean {
  const definition = isFields(tool['function']) ? tool['function'] : tool
  const schema = [definition['input_schema'], definition['parameters'], definition['inputSchema']].find(isFields)
  const parameters = isFields(schema?.['properties']) ? Object.keys(schema['properties']) : []
  if (parameters.length > 0) return Object.keys(RECALL_PARAMETERS.properties).every((name) => parameters.includes(name))
  const description = textOf(definition['description']).trim()
  return description === '' || description === RECALL ? isConnected : description.includes(OWN_WORDS)
}

/** The first sentence of the tool's description. Hosts put words around it, or cut its end. */
const OWN_WORDS = RECALL_DESCRIPTION.slice(0, RECALL_DESCRIPTION.indexOf(':'))
