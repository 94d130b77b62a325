/** One Pi session under the context manager: opened, kept, closed, and abandoned with one notice if it fails. */
import { join } from 'node:path'
import { CONFIG_DIR_NAME, getAgentDir } from '@earendil-works/pi-coding-agent'
import type { ExtensionAPI, ExtensionContext, ExtensionHandler } from '@earendil-works/pi-coding-agent'
import type { ContextManager, OpenOptions, StayOptions } from '../index.js'
import { homeFolder, sentenceOf, unsentSentence } from '../lib/core/index.ts'
import { Boundary } from './boundary.ts'
import { Circumstances } from './circumstances.ts'
import { exemptions, NestedCalls } from './results.ts'
import type { Exempt } from './results.ts'
import { bounded, Failures, HANDLER_LIMIT_MS, isPassing, tell, toldIfLong } from './guard.ts'
import { askAboutSecrets, isKept, unanswered } from './first-start.ts'
import { HOLDOUT, isHeldOut, isMarked } from './holdout.ts'
import { pathsOf } from './mounts.ts'
import { overrideTools } from './overrides.ts'
import type { FileObserver } from './overrides.ts'
import { placeOf } from './place.ts'
import { confirmation, declaresTool, keptText, Recall, wholeText } from './recall.ts'
import { LastRequests } from './requests.ts'
import { readSettings } from './settings.ts'
import type { Settings } from './settings.ts'

/** The flag that says whether tools are replaced. */
export const TOOLS_FLAG = 'context-tools'

/** The kind under which failures of questions about files are counted. */
const FILES = 'files'

/** Time limits for opening and closing the store, in milliseconds. */
const OPEN_LIMIT_MS = 15_000
const CLOSE_LIMIT_MS = 5_000

/** The part of the native module that we use. It is loaded when a session starts, so that Pi also starts without it. */
export interface Native {
  open(options: OpenOptions): Promise<ContextManager>
  defaultStorePath(): string
}

/** Loads the native module. */
export type Load = () => Promise<Native>

/** Manages the session that Pi has open now. */
export class Host {
  readonly pi: ExtensionAPI
  readonly #load: Load
  /** Undefined before a session starts, and if it could not be opened. */
  boundary: Boundary | undefined
  settings: Settings | undefined
  /** The place of the store, for the user: a path, an XTDB node, or "memory". */
  place = ''
  /** The last two requests, as sent. */
  readonly requests = new LastRequests()
  /** The calls that the model's programs are making now. */
  readonly nested = new NestedCalls()
  /** Characters that answered reads have spared in results that have not come yet. */
  spared = 0
  /** True if the store outlives the process. */
  #isKept = false
  /** True once the user was asked about secrets; once in a process is enough. */
  #hasAsked = false
  /** The session that was given up. */
  #given: Boundary | undefined
  /** The reason why this session runs without a context manager. */
  failure: string | undefined
  /** Outputs that the settings exempt from collapsing. */
  exempt: Exempt = () => false
  /** The user wants the context manager in this session, although the holdout leaves it plain. */
  #insists = false
  #session: string | undefined
  #opening: Promise<void> = Promise.resolve()
  readonly #told = new Set<string>()
  #failures = new Failures()
  readonly #recall: Recall
  #overridden = false
  /** The model has the tools on every branch. */
  #early = false

  constructor(pi: ExtensionAPI, load: Load) {
    this.pi = pi
    this.#load = load
    this.#recall = new Recall(pi, () => this.manager())
  }

  /**
   * A handler that never fails and does nothing without an open session. An error is reported once, and Pi
   * continues as without the extension, or with the result of `instead` for the last session that was open.
   */
  handler<E, R = undefined>(
    name: string,
    work: (boundary: Boundary, event: E, ctx: ExtensionContext) => Promise<R | void>,
    instead: (boundary: Boundary, event: E) => R | undefined = () => undefined,
  ): ExtensionHandler<E, R> {
    return async (event, ctx) => {
      const { boundary } = this
      if (boundary === undefined) return this.#given === undefined ? undefined : instead(this.#given, event)
      try {
        const result = await bounded(toldIfLong(work(boundary, event, ctx), ctx), HANDLER_LIMIT_MS, `the handler of ${name}`)
        this.#failures.success(name)
        return result
      } catch (error) {
        if (this.boundary === boundary) await this.#failed(name, error, ctx)
        return instead(boundary, event)
      }
    }
  }

  /**
   * Opens the session that Pi has open. Repeating it for the same session changes nothing. `isNew`: nothing can have
   * been recorded of it, although it may begin with messages of the session that it was made of. Never rejects.
   */
  start(ctx: ExtensionContext, isNew = false): Promise<void> {
    const { sessionManager } = ctx
    const session = `${sessionManager.getSessionId()} ${sessionManager.getSessionFile() ?? ''}`
    if (session !== this.#session) {
      this.#session = session
      this.#opening = this.#opening.then(() => this.#start(ctx, isNew))
    }
    return this.#opening
  }

  /** Opens the session again after a failure, or although it is left plain. Never rejects. */
  restart(ctx: ExtensionContext): Promise<void> {
    this.#insists = true
    this.#session = undefined
    this.#told.clear()
    return this.start(ctx)
  }

  /** Closes the session, with a time limit, and reports writes that the database does not have yet. Never rejects. */
  async stop(ctx: ExtensionContext): Promise<void> {
    await this.#opening
    const { boundary } = this
    this.boundary = undefined
    this.#session = undefined
    this.#insists = false
    if (boundary === undefined) return
    // Every acknowledged write is already in the store, so nothing is lost.
    const left = await bounded(boundary.manager.close(), CLOSE_LIMIT_MS, 'closing the store').catch(() => undefined)
    const unsent = unsentSentence(left)
    if (unsent !== undefined) this.#tellOnce(ctx, `Context manager: ${unsent}.`)
  }

  /**
   * Gives the model the tools exactly if Pi's current branch declares them; otherwise its prompt would differ. Only
   * some versions of Pi do this on their own, and only for tools that the process knows.
   */
  followBranch(ctx: ExtensionContext): void {
    const declared = this.#early || declaresTool(ctx, this.#recall.names.activate)
    if (declared && !this.#recall.tools) this.#recall.bringTools()
    else if (!declared && this.#recall.tools) this.#recall.takeTools()
  }

  /**
   * A payload without the reasoning that the provider has refused, and with the lifetimes chosen for the cache; undefined if it
   * stays as it is. Never throws.
   */
  changed(payload: unknown, ctx: ExtensionContext): unknown {
    const left = this.#withoutRefused(payload, ctx)
    const { boundary } = this
    try {
      return (boundary?.off === false ? boundary.circumstances.withLifetimes(left ?? payload, ctx, boundary.figures.ledger.saved) : undefined) ?? left
    } catch (error) {
      this.#tellOnce(ctx, `Context manager: ${sentenceOf(error)}.`)
      return left
    }
  }

  /** The payload without refused reasoning; undefined if it has none. Tells the user once for each refusal. */
  #withoutRefused(payload: unknown, ctx: ExtensionContext): unknown {
    try {
      const binding = this.boundary?.circumstances.binding
      const count = binding?.withhold(ctx.sessionManager) ?? 0
      if (count > 0) {
        const steps = `${count} ${count === 1 ? 'step' : 'steps'}`
        this.#tellOnce(
          ctx,
          `Context manager: the provider refused the reasoning of ${steps}, because what came before it had changed. It is left out from now on.`,
        )
      }
      return binding?.changed(payload)
    } catch (error) {
      this.#tellOnce(ctx, `Context manager: ${sentenceOf(error)}.`)
      return undefined
    }
  }

  /** The tool with which the model brings something back. Adds one if there is none yet. */
  wayBack(): string {
    if (!this.#recall.possible) this.#recall.bringTools()
    return this.#recall.reads && this.pi.getActiveTools().includes('read') ? 'read' : this.#recall.names.activate
  }

  /** The open engine. Throws a message for the model or the user if there is none. */
  manager(): ContextManager {
    if (this.boundary === undefined) throw new Error(this.failure ?? 'the context manager has no open session')
    return this.boundary.manager
  }

  async #start(ctx: ExtensionContext, isNew: boolean): Promise<void> {
    await this.#close()
    this.requests.clear()
    this.exempt = () => false
    this.#given = undefined
    this.failure = undefined
    try {
      const project = ctx.isProjectTrusted() ? join(ctx.cwd, CONFIG_DIR_NAME) : undefined
      const { settings, given, problems } = readSettings({ user: getAgentDir(), project })
      this.settings = settings
      for (const problem of problems) this.#tellOnce(ctx, problem)
      if (this.#leavesPlain(ctx, settings)) return
      this.exempt = exemptions(settings.neverCollapse, ctx.cwd)
      const manager = await this.#open(ctx, settings, isNew)
      const circumstances = new Circumstances(this.pi, settings, () => this.requests.last)
      const leftOut = (why: string): void => this.#tellOnce(ctx, `Context manager: a message could not be recorded: ${why}.`)
      const boundary = new Boundary(manager, circumstances, this.#recall, settings.layout, leftOut)
      this.#failures = new Failures()
      boundary.off = !settings.enabled
      this.boundary = boundary
      this.#register(ctx, settings)
      await bounded(boundary.synchronize(ctx), HANDLER_LIMIT_MS, 'reading the session')
      // Pi starts whether or not it is answered.
      if (this.#isKept && !this.#hasAsked && ctx.mode === 'tui' && !given.has('redact')) void this.#askAboutSecrets(ctx)
    } catch (error) {
      await this.#give(error, ctx, 'could not start')
    }
  }

  /** Asks, and opens the session again if secrets are to be left out. Never rejects. */
  async #askAboutSecrets(ctx: ExtensionContext): Promise<void> {
    this.#hasAsked = true
    try {
      const redact = await askAboutSecrets(ctx, getAgentDir())
      if (redact === undefined) tell(ctx, unanswered(getAgentDir()), 'warning')
      if (redact !== true) return
      await this.restart(ctx)
      tell(ctx, 'Secrets of known shapes are left out of what is recorded from now on.', 'info')
    } catch (error) {
      this.#tellOnce(ctx, `Context manager: the answer could not be kept in your settings: ${sentenceOf(error)}.`)
    }
  }

  /** Leaves a session of the holdout as plain Pi would have it, with a mark by which `usage` tells it apart. */
  #leavesPlain(ctx: ExtensionContext, { holdout }: Settings): boolean {
    const { sessionManager } = ctx
    const entries = sessionManager.getEntries()
    if (this.#insists || !isHeldOut(sessionManager.getSessionId(), holdout, entries)) return false
    this.failure = 'This session runs without the context manager, because the setting "holdout" leaves some sessions plain. /context on switches it on here.'
    if (!isMarked(entries)) this.pi.appendEntry(HOLDOUT, { share: holdout })
    return true
  }

  async #open(ctx: ExtensionContext, settings: Settings, isNew: boolean): Promise<ContextManager> {
    const native = await this.#load()
    const { sessionManager } = ctx
    const kept = sessionManager.getSessionFile() !== undefined
    const place = placeOf(kept, settings.store, process.env, native.defaultStorePath)
    this.place = place.name
    this.#isKept = isKept(place.options)
    // A continued session has the prompt of its last run, to which other extensions may have contributed. They say so
    // with the next prompt; until then Pi has here only the text from which they begin.
    const isEmpty = !sessionManager.getEntries().some(({ type }) => type === 'message')
    const opening = native.open({
      ...(isNew || isEmpty ? { systemPrompt: ctx.getSystemPrompt() } : {}),
      sessionId: sessionManager.getSessionId(),
      isNew: isNew || isEmpty,
      ...pathsOf(ctx.cwd, homeFolder(), settings),
      store: place.options,
      window: { perTurn: settings.perTurn, turnsBack: settings.turnsBack },
      stay: staysOf(settings),
      watch: settings.watch,
      redact: settings.redact,
    })
    try {
      return await bounded(opening, OPEN_LIMIT_MS, `opening the store ${this.place}`)
    } catch (error) {
      opening.then((late) => late.close()).catch(() => {})
      throw new Error(`the store ${this.place} can't be opened: ${sentenceOf(error)}`)
    }
  }

  /** Tools are registered with the first session that opens, so that a failure leaves Pi's own tools alone. */
  #register(ctx: ExtensionContext, settings: Settings): void {
    if (!this.#overridden && (this.pi.getFlag(TOOLS_FLAG) || settings.tools) !== 'observe') {
      this.#overridden = true
      this.#recall.reads = overrideTools(this.pi, ctx, this.#observer(ctx)).includes('read')
    }
    this.#recall.inSections = settings.layout === 'sections'
    const { names } = this.#recall
    if (names.activate !== 'activate') {
      const called = Object.values(names).join(', ')
      this.#tellOnce(ctx, `Another extension has a tool with a name of ours, so the context manager's are called ${called}.`)
    }
    this.#early = settings.modelTools === 'start' || this.#recall.inSections || !this.#recall.possible || this.#addsTooLate(ctx)
    this.followBranch(ctx)
  }

  /**
   * True if tools that come later would cost reasoning: it is bound to the set of tools, and the provider takes
   * no additions in mid-conversation. They are declared from the first request then. A session that has begun stays as
   * it is.
   */
  #addsTooLate(ctx: ExtensionContext): boolean {
    const hasBegun = ctx.sessionManager.getBranch().some((entry) => entry.type === 'message' && entry.message.role === 'assistant')
    return !hasBegun && this.boundary?.circumstances.bindsTools(ctx) === true
  }

  #observer(ctx: ExtensionContext): FileObserver {
    const ask = async <T>(question: (manager: ContextManager) => Promise<T>): Promise<T | undefined> => {
      const { boundary } = this
      if (boundary === undefined) return undefined
      try {
        const answer = await bounded(question(boundary.manager), HANDLER_LIMIT_MS, 'indexing a file')
        this.#failures.success(FILES)
        return answer
      } catch (error) {
        if (this.boundary !== boundary) return undefined
        // If a single file can't be indexed, the tool decides what to do about it.
        const repeated = this.#failures.failure(FILES)
        if (!isPassing(error)) await this.#give(error, ctx, 'stopped')
        else if (repeated) this.#tellOnce(ctx, `Context manager: files are not being indexed: ${sentenceOf(error)}.`)
        return undefined
      }
    }
    const off = (): boolean => this.boundary?.rolls !== true
    return {
      isNested: (callId) => this.nested.has(callId),
      read: async (path, bytes, callId) => void (await ask((manager) => manager.indexFile(path, bytes, callId))),
      met: async (path) => void (await ask((manager) => manager.indexFiles([path]))),
      written: async (path, content, callId) => void (await ask((manager) => manager.indexWritten(path, content, callId))),
      answer: async (path, { offset, limit }, shown, callId) => {
        if (this.boundary?.inSections === true) return ask((manager) => confirmation(manager, path))
        const text = off() ? undefined : await ask((manager) => manager.answerRead(path, offset, limit, callId))
        if (text != null) this.spared += shown.length - text.length
        return text ?? undefined
      },
      recall: (name, nested) => bounded((nested ? keptText : wholeText)(this.manager(), name), HANDLER_LIMIT_MS, `reading ${name}`),
      guard: async (path, oldTexts, callId) => (off() ? {} : ((await ask((manager) => manager.guardEdit(path, oldTexts, callId))) ?? {})),
    }
  }

  async #failed(name: string, error: unknown, ctx: ExtensionContext): Promise<void> {
    const repeated = this.#failures.failure(name)
    if (isPassing(error) && !repeated) {
      this.boundary?.doubt()
      this.#tellOnce(ctx, `Context manager: ${sentenceOf(error)}.`)
      return
    }
    await this.#give(error, ctx, 'stopped')
  }

  /** Gives up for this session. Pi continues without the extension. */
  async #give(error: unknown, ctx: ExtensionContext, what: string): Promise<void> {
    this.failure = `The context manager ${what}: ${sentenceOf(error)}.`
    this.#given = this.boundary
    const closing = this.#close()
    if (ctx.hasUI) ctx.ui.setStatus('context', undefined)
    this.#tellOnce(ctx, `${this.failure} Pi continues without it; /context on tries again.`, 'error')
    await closing
  }

  async #close(): Promise<void> {
    const { boundary } = this
    this.boundary = undefined
    if (boundary === undefined) return
    await bounded(boundary.manager.close(), CLOSE_LIMIT_MS, 'closing the store').catch(() => {
      // The failure that led here has been reported.
    })
  }

  #tellOnce(ctx: ExtensionContext, text: string, kind: 'warning' | 'error' = 'warning'): void {
    if (this.#told.has(text)) return
    this.#told.add(text)
    tell(ctx, text, kind)
  }
}

/** The settings that say how long text stays and what rolls may cost, without those that are not given. */
function staysOf({ thinking, calls, prose, debtCap }: Settings): StayOptions {
  return {
    ...(thinking !== undefined && { thinking }),
    ...(calls !== undefined && { calls }),
    ...(prose !== undefined && { prose }),
    ...(debtCap !== undefined && { debtCap }),
  }
}
