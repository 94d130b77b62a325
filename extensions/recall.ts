/**
 * How the model brings back what collapsed. Pi's own `read` accepts the id of an output from the first call on and
 * costs nothing. The tools in `tools.ts` come at the very start of the prompt, so they are added once they are worth
 * their price.
 */
import type { ExtensionAPI, ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { ContextManager } from '../index.js'
import { activeHeading } from '../lib/lines/index.ts'
import { broughtBack } from '../lib/projection/index.ts'
import { namesBeside, registerTools } from './tools.ts'
import type { Engine, ToolNames } from './tools.ts'

/** The ways to bring things back, for one instance of the extension. */
export class Recall {
  readonly #pi: ExtensionAPI
  readonly #engine: Engine
  #names: ToolNames | undefined
  #registered = false
  /** True if Pi's `read` is ours and therefore accepts ids. */
  reads = false
  /** True if active contents have their own section. */
  inSections = false

  constructor(pi: ExtensionAPI, engine: Engine) {
    this.#pi = pi
    this.#engine = engine
  }

  /**
   * Returns what the tools are called. Fixed when first asked for, which is once all extensions have registered theirs:
   * Pi would give one name to one extension without a word.
   */
  get names(): ToolNames {
    return (this.#names ??= namesBeside(new Set(this.#pi.getAllTools().map((tool) => tool.name))))
  }

  /** True if the model has the tools. */
  get tools(): boolean {
    return this.#pi.getActiveTools().includes(this.names.activate)
  }

  /** True if the model can bring anything back. If not, nothing may collapse. */
  get possible(): boolean {
    return this.tools || (this.reads && this.#pi.getActiveTools().includes('read'))
  }

  /** Removes the tools from the model, from the next call on. */
  takeTools(): void {
    const ours = Object.values(this.names)
    this.#pi.setActiveTools(this.#pi.getActiveTools().filter((name) => !ours.includes(name)))
  }

  /** Gives the model the tools that the user has not switched off, from the next call on. */
  bringTools(): void {
    if (this.#registered) {
      this.#pi.setActiveTools([...new Set([...this.#pi.getActiveTools(), ...Object.values(this.names)])])
    } else {
      this.#registered = true
      registerTools(this.#pi, this.#engine, this.names, () => this.inSections)
    }
  }
}

/** True if the branch's transcript declares a tool, so that it is part of its prompt. */
export function declaresTool(ctx: ExtensionContext, name: string): boolean {
  let declared = false
  for (const message of ctx.sessionManager.buildSessionProjection().messages) {
    if (message.role !== 'system') continue
    if (message.toolsRemoved?.some((tool) => tool.name === name)) declared = false
    if (message.toolsAdded?.some((tool) => tool.name === name)) declared = true
  }
  return declared
}

/**
 * True if a provider accepts new tools in mid-conversation, so that the cached prompt before them stays valid.
 */
export function appendsTools(model: ExtensionContext['model']): boolean {
  const compat = (model?.compat ?? {}) as Record<string, unknown>
  const ways = ['supportsMidConvoToolChanges', 'supportsMidConvoToolAdditions', 'supportsAdditionalTools', 'supportsToolSearch']
  return compat['supportsMidConvoSystemMessages'] === true && ways.some((way) => compat[way] === true)
}

/** The answer to a read if the file's text is shown in its own section; undefined for a file without text. */
export async function confirmation(manager: ContextManager, path: string): Promise<string | undefined> {
  const [file] = await manager.query({ type: 'file', pathPrefix: path })
  if (file === undefined || typeof file.content !== 'string') return undefined
  return `${path} is active: its text is below, in ${activeHeading(file['xt/id'])}`
}

/** The whole text of an output or a file, with the arguments of its call if they have collapsed. */
export async function wholeText(manager: ContextManager, name: string): Promise<string> {
  const change = await broughtBack(manager, name)
  if (!change.ok) throw new Error(change.message)
  const text = change.content ?? ''
  if (change.arguments === undefined) return text
  return `${text}\n\narguments of the call: ${JSON.stringify(change.arguments)}`
}

/** The same for a program of the model. The model does not see it, so the active set does not change. */
export async function keptText(manager: ContextManager, name: string): Promise<string> {
  if (name.includes('@')) return wholeText(manager, name)
  const found = await manager.get(name)
  // Prose and reasoning are not objects, so bringing them back activates nothing.
  const content = found === null ? (await manager.activate(name)).content : found.content
  if (typeof content === 'string') return content
  throw new Error(found === null ? `no object has the id ${name}` : `${name} has no text`)
}
