/**
 * What every host's entry is made of: one session, opened at the first call, whose failures never reach the host. Nothing
 * here loads the addon before it is needed, so that a host on a platform without one works as if we were not there.
 */
import type { ContextManager, OpenOptions } from '../index.ts'
import { adopt, namesIn } from '../harness/handover.ts'
import { Projection } from '../harness/projection.ts'
import type { ProjectionOptions } from '../harness/projection.ts'
import { recall } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import type { Shape } from '../harness/shape.ts'
import type { ShapeName } from '../harness/shapes.ts'

/** How a host's context is opened. One context is one conversation; a subagent has one of its own. */
export interface HostOptions extends Omit<OpenOptions, 'layout' | 'model' | 'shape' | 'cwd'> {
  /** The agent's folder. Default: the process's. */
  cwd?: string
  /** The model in use; a function where it may change. Its prices decide when something collapses. */
  model?: ProjectionOptions['model']
  /** Estimated tokens of system prompt and tool declarations, where the host does not show them to us. */
  systemTokens?: number
  /**
   * Whether prose, reasoning and old calls may be shortened, too, and not only outputs and arguments. Default true; false
   * in the OpenAI Agents SDK, whose sessions store what the model was sent. The engine makes no such edits yet.
   */
  shortens?: boolean
  /** Told of each roll. */
  onRoll?: ProjectionOptions['onRoll']
  /** Told once what went wrong, and that the host goes on without us. Default: a warning of the process. */
  onWarning?: (sentence: string) => void
  /** The context whose model has started this one: what its prompt names, the model here can bring back. */
  parent?: HostContext
  /** Milliseconds since the epoch; for tests. Default `Date.now`. */
  now?: () => number
}

/** A call of ours takes no longer than that; then the host goes on without us. */
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
  readonly #told = new Set<string>()
  #canRecall = false
  /** Names in prompts that have been looked at. */
  readonly #adopted = new Set<string>()
  #isClosed = false

  /** `keepsOwn`: the host never takes what it is sent for its own words in a later process. */
  constructor(options: HostOptions, shape: ShapeName | Shape, keepsOwn = true) {
    this.#options = options
    this.#shape = shape
    this.#keepsOwn = keepsOwn
  }

  /** The session; undefined where it can't be opened, which was told then. */
  async manager(): Promise<ContextManager | undefined> {
    return (await this.#open())?.manager
  }

  /**
   * What to send in place of the host's messages; the same messages where we fail. `canRecall`: the model has the tool to
   * bring back what collapses.
   */
  async transform<T>(messages: T[], canRecall: boolean): Promise<T[]> {
    this.#canRecall = canRecall
    if (!canRecall) {
      this.#tell(
        'recall',
        'the model has no tool to bring back what collapses, so nothing does; give the agent the tool "activate" of its context',
      )
    }
    try {
      return await bounded(this.#transform(messages))
    } catch (error) {
      this.#tell('failed', `the conversation is sent as it is: ${sentence(error)}`)
      return messages
    }
  }

  /** Answers a call of the tool `activate`. */
  async activate(input: RecallInput): Promise<string> {
    try {
      const opened = await bounded(this.#open())
      if (opened === undefined) return 'the context manager is not available; repeat the call whose output you need'
      return await bounded(recall(opened.manager, opened.projection, input))
    } catch (error) {
      return `this can't be brought back now: ${sentence(error)}`
    }
  }

  /**
   * Records a file as it is now, which a tool of the host's has shown or written. Returns its text; undefined where it
   * has none or can't be recorded.
   */
  async met(path: string, isWritten: boolean): Promise<string | undefined> {
    try {
      const opened = await bounded(this.#open())
      if (opened === undefined) return undefined
      const { manager } = opened
      const { id } = await (isWritten ? manager.indexWritten(path) : manager.indexFile(path))
      return (await manager.get(id))?.content ?? undefined
    } catch (error) {
      this.#tell('file', `${path} is not recorded: ${sentence(error)}`)
      return undefined
    }
  }

  /** Closes the session; what was recorded is in the store at any time. */
  async close(): Promise<void> {
    this.#isClosed = true
    const opened = await this.#opened
    await opened?.manager.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #transform<T>(messages: T[]): Promise<T[]> {
    const opened = await this.#open()
    if (opened === undefined) return messages
    const sent = await opened.projection.transform(messages)
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
      // Loaded here, not above: without the addon this rejects, and the host goes on.
      const { ContextManager } = await import('../index.ts')
      const manager = await ContextManager.open({ cwd, ...options })
      const projection = new Projection(manager, {
        shape: this.#shape,
        canRecall: () => this.#canRecall,
        shortens,
        ...(model === undefined ? {} : { model }),
        ...(systemTokens === undefined ? {} : { systemTokens }),
        ...(onRoll === undefined ? {} : { onRoll }),
        ...(now === undefined ? {} : { now }),
      })
      return { manager, projection }
    } catch (error) {
      this.#tell('opening', `the agent works without it: ${sentence(error)}`)
      return undefined
    }
  }

  /** Takes over from the parent what the prompts name. */
  async #adopt(messages: readonly object[], { manager, projection }: Opened): Promise<void> {
    const { parent: context } = this.#options
    const parent = context === undefined ? undefined : await context.#open()
    if (parent === undefined) return
    for (const message of messages) {
      if (!isPrompt(message)) continue
      for (const name of namesIn(JSON.stringify(message))) {
        if (this.#adopted.has(name)) continue
        this.#adopted.add(name)
        const id = await adopt(manager, parent.manager, parent.projection, name)
        if (id !== undefined) projection.allow(id)
      }
    }
  }

  #tell(what: string, text: string): void {
    if (this.#told.has(what)) return
    this.#told.add(what)
    const { onWarning } = this.#options
    const warning = `pi-context-manager: ${text}`
    if (onWarning !== undefined) onWarning(warning)
    else process.emitWarning(warning, { code: 'CONTEXT_HOST' })
  }
}

/** Whether a message is what a parent or a person has said. */
function isPrompt(message: object): boolean {
  const { role, info, type } = message as { role?: unknown; info?: { role?: unknown }; type?: unknown }
  return role === 'user' || info?.role === 'user' || type === 'human'
}

function sentence(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  const message = error instanceof Error ? error.message : String(error)
  return typeof code === 'string' ? `${message} (${code})` : message
}

async function bounded<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${LIMIT_MS / 1000} s`)), LIMIT_MS)
    timer.unref()
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
