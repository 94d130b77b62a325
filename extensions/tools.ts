/** The tools with which the model controls its context. Their texts are short, because every request carries them. */
import type { AgentToolResult, ExtensionAPI } from '@earendil-works/pi-coding-agent'
import { Type } from 'typebox'
import type { ContextManager, SetChange } from '../index.js'
import { partOf, RECALL_DESCRIPTION } from '../lib/projection/index.ts'

/** Returns the open engine. Throws a message for the model if there is none. */
export type Engine = () => ContextManager

/** Hits that a search shows. */
const MAX_HITS = 20

const ID = {
  id: Type.String({ description: 'as first lines, toolcall_ref lines and search_context show it' }),
}

const PINNING = [
  ['pin', 'Keep an output or file that you need throughout from collapsing.'],
  ['unpin', 'Undo pin.'],
] as const

/**
 * They control the model's own context, which its programs (codemode) don't see. Older versions of Pi ignore this
 * field.
 */
const FOR_THE_MODEL = { exposure: 'model-only' } as const

/** The tools as they are recorded, and called where no other extension has a tool of such a name. */
export const TOOLS = ['activate', 'deactivate', 'pin', 'unpin', 'search_context'] as const

type Tool = (typeof TOOLS)[number]

/** The names of the tools in a session. */
export type ToolNames = Readonly<Record<Tool, string>>

/** Names for the tools: their own, or all of them with a prefix if one of their own is taken. */
export function namesBeside(taken: ReadonlySet<string>): ToolNames {
  const prefix = TOOLS.some((tool) => taken.has(tool)) ? PREFIX : ''
  return Object.fromEntries(TOOLS.map((tool) => [tool, prefix + tool])) as ToolNames
}

const PREFIX = 'context_'

/** The tool of ours that a session calls by this name; undefined for any other name. */
export function toolOf(name: string): Tool | undefined {
  return TOOLS.find((tool) => name === tool || name === PREFIX + tool)
}

/** Registers the tools, which also makes them active. `inSections`: active contents are shown in a section of their own. */
export function registerTools(pi: ExtensionAPI, engine: Engine, names: ToolNames, inSections: () => boolean = () => false): void {
  pi.registerTool({
    ...FOR_THE_MODEL,
    name: names.activate,
    label: 'activate',
    // All guidance is in the descriptions: words in the system prompt would change it when the tools are added.
    description: RECALL_DESCRIPTION,
    parameters: Type.Object({
      ...ID,
      lines: Type.Optional(Type.String({ description: 'e.g. "120-180"' })),
      grep: Type.Optional(Type.String({ description: 'regular expression' })),
    }),
    async execute(_id, { id, lines, grep }) {
      const part = partOf(lines, grep)
      const change = granted(await engine().activate(id, part))
      return answer(part === undefined ? (inSections() ? below(change) : whole(change)) : change.content || `no line matches ${JSON.stringify(grep)}`)
    },
  })
  pi.registerTool({
    ...FOR_THE_MODEL,
    name: names.deactivate,
    label: 'deactivate',
    description: 'Say that you have taken what you need from an output or file, so that it can collapse. It can be activated again.',
    parameters: Type.Object({
      ...ID,
      drop: Type.Optional(Type.Boolean({ description: 'also leave it out of lists' })),
    }),
    async execute(_id, { id, drop }) {
      return answer(granted(drop === true ? await engine().demote(id) : await engine().deactivate(id)).message)
    },
  })
  for (const [tool, description] of PINNING) {
    pi.registerTool({
      ...FOR_THE_MODEL,
      name: names[tool],
      label: tool,
      description,
      parameters: Type.Object(ID),
      async execute(_id, { id }) {
        return answer(granted(await engine()[tool](id)).message)
      },
    })
  }
  pi.registerTool({
    ...FOR_THE_MODEL,
    name: names.search_context,
    label: 'search context',
    description: 'Search all outputs and files of this session, collapsed ones and old versions included, for words.',
    parameters: Type.Object({ query: Type.String() }),
    async execute(_id, { query }) {
      const manager = engine()
      // The store also has other sessions, whose objects can't be activated here.
      const hits = await manager.search(query, { limit: MAX_HITS, sessionId: manager.sessionId })
      return answer(hits.length === 0 ? 'no match' : hits.map((hit) => hit.shown).join('\n'))
    },
  })
}

/** Returns what an activation brings back: the text and the arguments of the call, as far as they are not visible. */
function whole(change: SetChange): string {
  const text = change.visible ? change.message : change.content || `${change.message}; it is empty`
  return change.arguments === undefined ? text : `${text}\n\narguments of the call: ${JSON.stringify(change.arguments)}`
}

/** The same if active contents have their own section. An old version is in no set. */
function below(change: SetChange): string {
  const [done] = change.message.split('; ')
  return done!.endsWith(' is active') ? `${done}; its content is below, under its full id` : whole(change)
}

/** Turns a refusal into a failed result with the engine's message. */
function granted(change: SetChange): SetChange {
  if (!change.ok) throw new Error(change.message)
  return change
}

/** Estimated tokens of the tools' declarations. */
export const TOOLS_TOKENS = measured()

function measured(): number {
  let characters = 0
  const meter = {
    registerTool({ name, description, parameters }: Parameters<ExtensionAPI['registerTool']>[0]): void {
      characters += JSON.stringify({ type: 'function', function: { name, description, parameters } }).length
    },
  }
  registerTools(
    meter as unknown as ExtensionAPI,
    () => {
      throw new Error('only measured')
    },
    namesBeside(new Set()),
  )
  return Math.ceil(characters / 4)
}

function answer(text: string): AgentToolResult<undefined> {
  return { content: [{ type: 'text', text }], details: undefined }
}
