/**
 * The part that all hosts share: one session, opened at the first call, whose failures never reach the host. The addon is
 * loaded when it is needed and not before, so that a host on a platform without it works as if we were not there.
 */
import type { ContextManager, OpenOptions } from '../session/index.ts'
import type { EditGuard, PlannedChange } from '../../index.js'
import { isFields, sentenceOf, unsentSentence, Warnings, within } from '../core/index.ts'
import { adoptNamed, Projection, recall } from '../projection/index.ts'
import type { ProjectionOptions, RecallInput, Shape, ShapeName } from '../projection/index.ts'
import { changesOf } from '../tools/index.ts'
import type { GuardedCall } from './guard.ts'

/** Options of a host's context. Each conversation has its own context, and so has each subagent. */
export interface HostOptions extends Omit<OpenOptions, 'layout' | 'model' | 'shape' | 'cwd'> {
  /** The agent's working directory. Default: that of the process. */
  cwd?: string
  /** The model in use; a function if it may change. Its prices decide when outputs collapse. */
  model?: ProjectionOptions['model']
  /** Estimated tokens of the system prompt and the tool declarations, which the host does not show us. Default 0. */
  systemTokens?: number
  /**
   * True if prose, reasoning and old calls may be shortened, and not only outputs and arguments. Default true, but
   * false for the OpenAI Agents SDK, whose sessions store what was sent.
   */
  shortens?: boolean
  /** Called after each roll. */
  onRoll?: ProjectionOptions['onRoll']
  /** Called once for each kind of failure; the host continues without us. Default: emits a process warning. */
  onWarning?: (sentence: string) => void
  /** The parent's context. The model can bring back those of its outputs that the prompt names. */
  parent?: HostContext
  /** Milliseconds since the epoch; for tests. Default `Date.now`. */
  now?: () => number
}

/** The members that the contexts of several frameworks share. */
export interface CommonContext<T> extends AsyncDisposable {
  /** Creates the context of a subagent, whose model can bring back the outputs that its prompt names. */
  child(options: HostOptions): T
  /** Closes the session. */
  close(): Promise<void>
  /** The part that all hosts share. */
  readonly context: HostContext
}

/** The members of {@link CommonContext}; `create` makes a context of the same framework. */
export function commonContext<T>(context: HostContext, options: HostOptions, create: (options: HostOptions) => T): CommonContext<T> {
  return {
    context,
    child: (more) => create({ ...options, ...more, parent: context }),
    close: () => context.close(),
    [Symbol.asyncDispose]: () => context.close(),
  }
}

/** The time limit of a call; after it, the host continues without us. */
const LIMIT_MS = 30_000

interface Opened {
  manager: ContextManager
  projection: Projection
}

/** The context of one conversation of a host. */
export class HostContext {
  readonly #options: HostOptions
  readonly #shape: ShapeName | Shape
  readonly #keepsOwn: boolean
  #opened: Promise<Opened | undefined> | undefined
  /** The projection, once the session is open. */
  #projection: Projection | undefined
  readonly #warnings: Warnings
  #canRecall = false
  /** Names from prompts that have been processed. */
  readonly #adopted = new Set<string>()
  #isClosed = false
  /** The number of calls without a tool to bring text back. */
  #callsWithout = 0

  /** `keepsOwn`: the host stores its own messages and not what was sent. */
  constructor(options: HostOptions, shape: ShapeName | Shape, keepsOwn = true) {
    this.#options = options
    this.#warnings = new Warnings(options.onWarning, 'CONTEXT_HOST')
    this.#shape = shape
    this.#keepsOwn = keepsOwn
  }

  /** The session, or undefined if it can't be opened; a warning has said so. */
  async manager(): Promise<ContextManager | undefined> {
    return (await this.#open())?.manager
  }

  /**
   * Returns the messages to send instead of the host's, or the host's own if we fail. `canRecall`: the model has the tool
   * that brings back collapsed outputs.
   */
  async transform<T>(messages: T[], canRecall: boolean): Promise<T[]> {
    this.#canRecall = canRecall
    // A host may fetch the tools only when its first answer has come, and nothing is old enough to collapse before.
    if (!canRecall && this.#callsWithout++ > 0) {
      this.#warnings.tell('recall', 'nothing collapses, because the model has no tool to bring outputs back; give the agent the tool "activate" of its context')
    }
    try {
      return await within(LIMIT_MS, this.#transform(messages))
    } catch (error) {
      this.#warnings.tell('failed', `the messages go out as they were last sent, with the new ones as they are: ${sentenceOf(error)}`)
      return this.#projection?.lastForm(messages) ?? messages
    }
  }

  /**
   * Call it with the error of a model call that failed. True if the provider has refused reasoning because something
   * before it had changed. If so, the next request goes without that reasoning, so the call can be repeated at once.
   */
  async refused(error: unknown): Promise<boolean> {
    return (await this.#opened)?.projection.refused(error) ?? false
  }

  /** Call it with a request, or the AI SDK's `providerOptions`, that may ask the provider to drop reasoning. */
  async asked(request: unknown): Promise<void> {
    ;(await this.#opened)?.projection.asked(request)
  }

  /** Call it with an answer of the model that may report what became of its reasoning (`input_transformations`). */
  async answered(answer: unknown): Promise<void> {
    ;(await this.#opened)?.projection.answered(answer)
  }

  /** Answers a call of the tool `activate`. */
  async activate(input: RecallInput): Promise<string> {
    try {
      const opened = await within(LIMIT_MS, this.#open())
      if (opened === undefined) return 'the context manager is not available; repeat the call whose output you need'
      return await within(LIMIT_MS, recall(opened.manager, input))
    } catch (error) {
      return `this can't be brought back now: ${sentenceOf(error)}`
    }
  }

  /**
   * Records the current state of a file that one of the host's tools has shown or written. Returns its text, or undefined
   * if it has none or can't be recorded. `callId` names the call of the result, so that the engine need not guess.
   */
  met(path: string, isWritten: boolean, callId?: string): Promise<string | undefined> {
    return this.#about(path, async (manager) => {
      const { id } = await (isWritten ? manager.indexWritten(path, null, callId) : manager.indexFile(path, null, callId))
      return (await manager.get(id))?.content ?? undefined
    })
  }

  /**
   * Checks a call of one of the host's tools before it changes files: have they changed unseen by the model? Returns
   * a refusal, or the difference to put after the result. Never rejects; a call that can't be checked may be made.
   */
  async guard(call: GuardedCall): Promise<EditGuard> {
    const differences: string[] = []
    for (const { path, oldTexts } of this.#changesOf(call)) {
      const answer = await this.#about(path, (manager) => manager.guardEdit(path, oldTexts ?? null, call.callId ?? null))
      if (answer?.refusal !== undefined) return { refusal: answer.refusal }
      if (answer?.difference !== undefined) differences.push(answer.difference)
    }
    return differences.length === 0 ? {} : { difference: differences.join('\n\n') }
  }

  /** Records what a call of one of the host's tools has left in the files that it changed. Never rejects. */
  async changed(call: GuardedCall): Promise<void> {
    for (const { path } of this.#changesOf(call)) await this.#about(path, (manager) => manager.indexWritten(path, null, call.callId ?? null))
  }

  /** The changes that a call would make to files; none without the addon, and a warning says so. */
  #changesOf({ name, args }: GuardedCall): PlannedChange[] {
    try {
      return isFields(args) ? changesOf(name, args) : []
    } catch (error) {
      this.#warnings.tell('opening', `the agent continues without it: ${sentenceOf(error)}`)
      return []
    }
  }

  /** Asks the session about a file; undefined if it can't say. */
  async #about<T>(path: string, question: (manager: ContextManager) => Promise<T>): Promise<T | undefined> {
    try {
      const opened = await within(LIMIT_MS, this.#open())
      return opened === undefined ? undefined : await within(LIMIT_MS, question(opened.manager))
    } catch (error) {
      this.#warnings.tell('file', `${path} was not recorded: ${sentenceOf(error)}`)
      return undefined
    }
  }

  /** Closes the session. Everything recorded is in the store already; what its journal could not send yet is reported. */
  async close(): Promise<void> {
    this.#isClosed = true
    const opened = await this.#opened
    const unsent = unsentSentence(await opened?.manager.close())
    if (unsent !== undefined) this.#warnings.tell('unsent', unsent)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #transform<T>(messages: T[]): Promise<T[]> {
    const opened = await this.#open()
    if (opened === undefined) return messages
    const sent = await opened.projection.transform(messages)
    const { withheldReasoning: withheld } = opened.projection
    if (withheld > 0) {
      const steps = `${withheld} ${withheld === 1 ? 'step' : 'steps'}`
      this.#warnings.tell('reasoning', `the provider refused the reasoning of ${steps}, because what came before it had changed; it is left out from now on`)
    }
    await this.#adopt(messages as object[], opened)
    return sent
  }

  #open(): Promise<Opened | undefined> {
    this.#opened ??= this.#isClosed ? Promise.resolve(undefined) : this.#start()
    return this.#opened
  }

  async #start(): Promise<Opened | undefined> {
    const { model, systemTokens, shortens = this.#keepsOwn, onRoll, onWarning: _w, parent: _p, now, cwd = process.cwd(), ...options } = this.#options
    try {
      // Imported here and not at the top, because it fails without the addon, and the host must continue.
      const { ContextManager } = await import('../session/index.ts')
      const manager = await ContextManager.open({ cwd, ...options })
      const projection = new Projection(manager, {
        shape: this.#shape,
        onWarning: (warning) => this.#warnings.tell(warning, warning.replace(/^pi-context-manager: /, '')),
        canRecall: () => this.#canRecall,
        shortens,
        ...(model === undefined ? {} : { model }),
        ...(systemTokens === undefined ? {} : { systemTokens }),
        ...(onRoll === undefined ? {} : { onRoll }),
        ...(now === undefined ? {} : { now }),
      })
      this.#projection = projection
      return { manager, projection }
    } catch (error) {
      this.#warnings.tell('opening', `the agent continues without it: ${sentenceOf(error)}`)
      return undefined
    }
  }

  /** Takes over from the parent the objects that the prompts name. */
  async #adopt(messages: readonly object[], opened: Opened): Promise<void> {
    const context = this.#options.parent
    const parent = context === undefined ? undefined : await context.#open()
    if (parent !== undefined) await adoptNamed(messages.filter(isPrompt), this.#adopted, opened, async () => parent)
  }
}

/** True if a message is a prompt, of a user or of a parent agent. */
function isPrompt(message: object): boolean {
  const { role, info, type } = message as { role?: unknown; info?: { role?: unknown }; type?: unknown }
  return role === 'user' || info?.role === 'user' || type === 'human'
}
