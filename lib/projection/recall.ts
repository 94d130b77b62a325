/** The tool with which a model brings back collapsed outputs, for all hosts. */
import type { ContextManager, Part, SetChange } from '../../index.js'
import { isFields } from '../core/index.ts'

/** Its name. */
export const RECALL = 'activate'

/** Its description for the model. */
export const RECALL_DESCRIPTION =
  'Bring back a tool output or file by its id: all of it, some lines, or those that match. id@tx is an old version. ' +
  'Context is scarce, so old tool outputs collapse to a toolcall_ref line and large ones are shown as an excerpt; ' +
  'nothing is lost, and this is cheaper than repeating the call.'

/** The tool's arguments. */
export interface RecallInput {
  id: string
  lines?: string | null
  grep?: string | null
}

/** Its parameters as JSON Schema. */
export const RECALL_PARAMETERS = {
  type: 'object' as const,
  properties: {
    id: { type: 'string' as const, description: 'as shown in headers and toolcall_ref lines' },
    lines: { type: 'string' as const, description: 'e.g. "120-180"' },
    grep: { type: 'string' as const, description: 'regular expression' },
  },
  required: ['id'],
  additionalProperties: false,
}

/** True if an ID is that of a shortened text of the user or the model, and not of an object. */
export function isIdOfText(id: string): boolean {
  return /^[0-9a-f]{11}$/.test(id)
}

/** Answers a call of the tool. If something can't be brought back, the answer is a sentence for the model. */
export async function recall(manager: ContextManager, input: RecallInput): Promise<string> {
  return (await recallTexts(manager, input)).join('\n\n')
}

/**
 * The same as separate texts: the content byte for byte, then the call's arguments, if those have also collapsed. `hidden` are
 * arguments that the caller knows to have collapsed.
 */
export async function recallTexts(manager: ContextManager, input: RecallInput, hidden?: object): Promise<string[]> {
  const { id, lines, grep } = input
  if (typeof id !== 'string' || id === '') return ['pass the id of an output, as shown in its toolcall_ref line']
  const part = partOf(lines, grep)
  const change = await broughtBack(manager, id, part).catch((error: Error & { code?: unknown }) => {
    if (error.code !== 'INVALID_ARGUMENT') throw error
    return { ok: false, message: error.message } as SetChange
  })
  if (!change.ok) return [change.message]
  return part === undefined ? whole({ ...change, ...(hidden === undefined ? {} : { arguments: hidden }) }) : [change.content || 'no line matches']
}

/** The codes of a store that can be read and takes nothing: its disk is full or can't be written, or its node is away. */
const TAKES_NOTHING: ReadonlySet<unknown> = new Set(['STORE_FULL', 'STORE_UNAVAILABLE', 'CONFLICT'])

/**
 * Activates an object, and returns its text. If the store can't record that, the model still gets the text: that of the newest
 * version, which is only read. Rejects with the store's error if that can't be read either.
 */
export async function broughtBack(manager: ContextManager, id: string, part?: Part): Promise<SetChange> {
  try {
    return await manager.activate(id, part)
  } catch (error) {
    if (!TAKES_NOTHING.has((error as { code?: unknown }).code)) throw error
    const name = (await manager.get(id).catch(() => null))?.['xt/id']
    const newest = name === undefined ? undefined : (await manager.history(name).catch(() => [])).at(-1)
    if (name === undefined || newest === undefined) throw error
    const change = await manager.activate(`${name}@${newest.txId}`, part)
    const args: unknown = newest.document['args']
    // Only the session knows which arguments have collapsed, and it could not be asked; too many do no harm.
    return part === undefined && newest.document.type === 'toolcall' && isFields(args) && Object.keys(args).length > 0 ? { ...change, arguments: args } : change
  }
}

function whole(change: SetChange): string[] {
  return withArguments(change.visible ? change.message : change.content || `${change.message}; it is empty`, change.arguments)
}

/** An answer to a call of the tool: a text, and the call's arguments if those have also collapsed. */
export function withArguments(text: string, args: object | undefined): string[] {
  return args === undefined ? [text] : [text, `arguments of the call: ${JSON.stringify(args)}`]
}

/** The part that a model asks for; undefined for all of it. Models also give empty texts for what they don't ask for. */
export function partOf(lines: string | null | undefined, grep: string | null | undefined): Part | undefined {
  if (!lines && !grep) return undefined
  return { ...(lines && { lines }), ...(grep && { grep }) }
}
