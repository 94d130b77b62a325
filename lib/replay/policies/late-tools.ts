/** The context manager's own tools in a replayed request: a model gets them from the start, or later in the conversation. */
import { appendsTools, binds } from '../../models/index.ts'
import { systemBlock } from '../../recordings/index.ts'
import type { ReplayBlock } from '../../recordings/index.ts'
import { bindingOf } from './model-call.ts'
import type { PolicyMoment, Setting } from './policy.ts'

/** A message that a request shows. */
export interface ShownMessage {
  entry: { key: string }
  blocks: ReplayBlock[]
}

/** The place of the tools in a session's requests. */
export class LateTools {
  readonly #setting: Setting
  /** The system prompt and the tool declarations, without and with the context manager's tools. */
  readonly #systems: readonly [plain: ReplayBlock, tools: ReplayBlock]
  /** The tools by themselves, where a provider takes them in mid-conversation. */
  readonly #tools: ReplayBlock
  /** The message after which the model got the tools, and whether they stand there; no message if it had them from the start. */
  #given: { leaf: string | undefined; isAppended: boolean } | undefined

  constructor(setting: Setting) {
    this.#setting = setting
    const { systemTokens, unitsPerToken, manager: own } = setting
    this.#systems = [
      systemBlock('', systemTokens * unitsPerToken),
      systemBlock('with the tools of the context manager', (systemTokens + own.overheadTokens) * unitsPerToken),
    ]
    this.#tools = systemBlock('the tools of the context manager', own.overheadTokens * unitsPerToken)
  }

  /** True once the model has them. */
  get areGiven(): boolean {
    return this.#given !== undefined
  }

  /** True if the provider takes new tools in mid-conversation. */
  canAppend(moment: PolicyMoment | undefined): boolean {
    return (this.#setting.manager.appendsTools ?? appendsTools)(moment?.model ?? '')
  }

  /** True if giving the model tools later would cost it its reasoning. */
  bind(moment: PolicyMoment | undefined): boolean {
    const binding = bindingOf(this.#setting, moment)
    return binds(binding) && !this.canAppend(moment)
  }

  /** The first request of a session. */
  begin(moment: PolicyMoment): void {
    if (this.bind(moment)) this.#given = { leaf: undefined, isAppended: false }
  }

  /** Gives the model the tools after the message `leaf`. */
  give(leaf: string, moment: PolicyMoment | undefined): void {
    this.#given = { leaf, isAppended: this.canAppend(moment) }
  }

  /** The conversation continues with other messages: on a branch from before they were given, the model lacks the tools. */
  branch(keys: ReadonlySet<string>): void {
    const leaf = this.#given?.leaf
    if (leaf !== undefined && !keys.has(leaf)) this.#given = undefined
  }

  /** The system prompt and the tool declarations of a request with these messages. */
  system(visible: readonly ShownMessage[]): ReplayBlock {
    return this.#systems[this.#given !== undefined && this.#appendedAfter(visible) === undefined ? 1 : 0]
  }

  /** A request with these messages. */
  request(visible: readonly ShownMessage[]): ReplayBlock[] {
    const leaf = this.#appendedAfter(visible)
    return [this.system(visible), ...visible.flatMap(({ entry, blocks }) => (entry.key === leaf ? [...blocks, this.#tools] : blocks))]
  }

  /** The message that the tools follow in a request; undefined if none that it shows. */
  #appendedAfter(visible: readonly ShownMessage[]): string | undefined {
    if (this.#given?.isAppended !== true) return undefined
    const { leaf } = this.#given
    return visible.some(({ entry }) => entry.key === leaf) ? leaf : undefined
  }
}
