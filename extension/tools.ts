/** The tools that the model controls its context with. Few words: each request carries them. */
import type { AgentToolResult, ExtensionAPI } from '@earendil-works/pi-coding-agent'
import { Type } from 'typebox'
import type { ContextManager, Part, SetChange } from '../index.js'

/** Gives the open engine; throws a sentence for the model where there is none. */
export type Engine = () => ContextManager

/** The tool without which nothing collapses: the model could not bring it back. */
export const ACTIVATE = 'activate'

/** Hits that a search shows. */
const MAX_HITS = 20

const ID = {
  id: Type.String({ description: 'id, as headers, toolcall_ref lines and search_context show it' }),
}

/** Registers `activate`, `deactivate`, `pin`, `unpin` and `search_context`. */
export function registerTools(pi: ExtensionAPI, engine: Engine): void {
  pi.registerTool({
    name: ACTIVATE,
    label: 'activate',
    description:
      'Bring back a tool output or file by its id: all of it, some lines, or the lines with a text. id@tx is an old version.',
    promptSnippet: 'Bring back collapsed tool outputs and files',
    promptGuidelines: [
      'Context is scarce. Old tool outputs collapse to a toolcall_ref line; nothing is lost: activate the id when you need it again, instead of repeating the call.',
      'Large outputs are shown as an excerpt that names the lines left out; get those with activate and lines or grep.',
      'deactivate an output once you have taken what you need from it; pin what you need throughout.',
    ],
    parameters: Type.Object({
      ...ID,
      lines: Type.Optional(Type.String({ description: 'e.g. "120-180"' })),
      grep: Type.Optional(Type.String({ description: 'only lines containing this' })),
    }),
    async execute(_id, { id, lines, grep }) {
      const part = partOf(lines, grep)
      const change = granted(await engine().activate(id, part))
      return answer(
        part === undefined ? whole(change) : change.content || `no line contains ${JSON.stringify(grep)}`,
      )
    },
  })
  pi.registerTool({
    name: 'deactivate',
    label: 'deactivate',
    description: 'Say that an output or file is no longer needed. It can be activated again.',
    parameters: Type.Object({
      ...ID,
      drop: Type.Optional(Type.Boolean({ description: 'also leave it out of lists' })),
    }),
    async execute(_id, { id, drop }) {
      return answer(
        granted(drop === true ? await engine().demote(id) : await engine().deactivate(id)).message,
      )
    },
  })
  pi.registerTool({
    name: 'pin',
    label: 'pin',
    description: 'Keep an output or file from collapsing.',
    parameters: Type.Object(ID),
    async execute(_id, { id }) {
      return answer(granted(await engine().pin(id)).message)
    },
  })
  pi.registerTool({
    name: 'unpin',
    label: 'unpin',
    description: 'Undo pin.',
    parameters: Type.Object(ID),
    async execute(_id, { id }) {
      return answer(granted(await engine().unpin(id)).message)
    },
  })
  pi.registerTool({
    name: 'search_context',
    label: 'search context',
    description:
      'Search all outputs and files of this session, collapsed ones and old versions included, for words.',
    parameters: Type.Object({ query: Type.String() }),
    async execute(_id, { query }) {
      const manager = engine()
      // The store holds other sessions too; their objects can't be activated here.
      const hits = await manager.search(query, { limit: MAX_HITS, sessionId: manager.sessionId })
      return answer(hits.length === 0 ? 'no match' : hits.map((hit) => hit.shown).join('\n'))
    },
  })
}

/** The part that the model asks for. Throws a sentence that says how to ask. */
export function partOf(lines: string | undefined, grep: string | undefined): Part | undefined {
  if (lines !== undefined && lines !== '' && grep !== undefined && grep !== '') {
    throw new Error('give lines or grep, not both')
  }
  if (grep !== undefined && grep !== '') return { grep }
  if (lines === undefined || lines === '') return undefined
  const found = /^\s*(\d{1,9})(?:\s*[-–,:]\s*(\d{1,9}))?\s*$/.exec(lines)
  if (found === null) throw new Error(`lines is a range such as "120-180", not ${JSON.stringify(lines)}`)
  const first = Number(found[1])
  return { lines: [first, found[2] === undefined ? first : Number(found[2])] }
}

/** What an activation brings back: the text, unless it is in sight, and the arguments of the call where they are not. */
function whole(change: SetChange): string {
  const text = change.visible
    ? `${change.message}; its text is still above in this conversation`
    : change.content || `${change.message}; it is empty`
  return change.arguments === undefined
    ? text
    : `${text}\n\narguments of the call: ${JSON.stringify(change.arguments)}`
}

/** A refusal becomes a failed result with the engine's sentence. */
function granted(change: SetChange): SetChange {
  if (!change.ok) throw new Error(change.message)
  return change
}

function answer(text: string): AgentToolResult<undefined> {
  return { content: [{ type: 'text', text }], details: undefined }
}
