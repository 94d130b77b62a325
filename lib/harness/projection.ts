/**
 * The projection: what a harness sends instead of its conversation. Each new message goes to the engine once. The engine's
 * edits are kept in a table and applied to the host's own messages at each call.
 */
import type { ContextManager, IncomingMessage, ModelCall, ModelPrices, Plan, RollReceipt, Toolcall } from '../../index.js'
import { invalid } from '../errors.ts'
import { sections } from '../sections.ts'
import { forgetBirth, wasBorn } from './births.ts'
import { handed, incoming, isTranslated } from './crossing.ts'
import { fingerprint, guarded } from './identity.ts'
import type { EngineMessage, ToolCallBlock } from './message.ts'
import { recordable, resultText } from './message.ts'
import { callsOf, isReworded, objectFor, objectsOf, standsFor } from './objects.ts'
import { groupsOf, inPieces } from './pieces.ts'
import { isPrefix, lastCommon, recordedOf, recordOf, saidBy } from './recorded.ts'
import type { Shape } from './shape.ts'
import type { ShapeName } from './shapes.ts'
import { shapeNamed, shapeOf, UNDECIDED } from './shapes.ts'
import type { Part, Unit } from './table.ts'
import { contentOf, read, renewed, Table, undisturbed, wordsOf } from './table.ts'
import { checkWidth } from './width.ts'

/** The model that the messages are sent to. */
export interface ProjectedModel extends ModelPrices {
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** How long the provider keeps a prompt prefix, in milliseconds. Default 300,000. */
  cacheTtlMs?: number
  /** The model's name, as `provider/model` if the messages name both. After a change, the cache is cold. */
  name?: string
  /** How many content blocks back the provider looks for a cached prefix: 20 for Anthropic's API. */
  lookbackBlocks?: number
  /** How many earlier endings of a user's message or a group of outputs it looks back: 20 for OpenAI's from GPT-5.6 on. */
  lookbackEndings?: number
  /**
   * What the provider does with the model's reasoning once something before it has changed: it does not check (`none`), the
   * model still reads it (`keeps`), it drops that reasoning and all later reasoning (`drops`), or it refuses the request
   * (`refuses`). Default `none`.
   */
  binding?: 'none' | 'keeps' | 'drops' | 'refuses'
  /** Whether text between the calls of an answer is part of the model's reasoning. Default false. */
  textIsReasoning?: boolean
}

/** Options of a projection. */
export interface ProjectionOptions {
  /**
   * `anchored` (default): outputs stay where they appeared until a roll pays off. `sections`: the canonical four sections,
   * rendered anew at each call; only for pi-ai's messages.
   */
  layout?: 'anchored' | 'sections'
  /** The model in use; a function if it may change. Without it, prices of 0.1 (read) and 1 (write) are assumed. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** Estimated tokens of system prompt and tool declarations. Default 0. */
  systemTokens?: number
  /** The shape of the messages. Default: detected. A host can supply its own shape. */
  shape?: ShapeName | Shape
  /**
   * Whether the model can bring back collapsed outputs; a function if that may change. While it can't, nothing collapses.
   * Default true: the harness gives the model `activate` as a tool.
   */
  canRecall?: boolean | (() => boolean)
  /**
   * Whether more than outputs and arguments may shrink: old reasoning may be dropped, prose and long user texts shortened,
   * and old calls reduced to one line. Don't set it in a harness that stores the projection instead of its own messages and
   * loads it in a later process, because shortened text would then count as what was said. Default false.
   */
  shortens?: boolean
  /** Called after each roll. */
  onRoll?: (receipt: RollReceipt) => void
  /** Milliseconds since the epoch; for tests and replays. Default `Date.now`. */
  now?: () => number
}

/** How many objects are fetched at once. */
const AT_ONCE = 64

/** The ID of a shortened text of a user or the model. */
const SAID = /^[0-9a-f]{11}$/

const UNKNOWN_MODEL: ProjectedModel = { contextWindow: 0, input: 0, cacheRead: 0, cacheWrite: 0 }

/** The projection of one session's messages. Calls run one after the other. */
export class Projection {
  readonly #manager: ContextManager
  readonly #options: ProjectionOptions
  #shape: Shape | undefined
  #table = new Table()
  /** Whether engine and table agree. False before the first call and after a failed one. */
  #isCertain = false
  /** Notices that were sent, by fingerprint. A host may return them as if they were its own messages. */
  readonly #notices = new Map<string, string>()
  /** Notices that could not be placed yet. */
  #unsaid: string[] = []
  /** The latest call by ID. */
  readonly #calls = new Map<string, ToolCallBlock>()
  /** Results that the harness truncated after recording them in full: call ID and text. */
  readonly #cut = new Set<string>()
  /** Calls whose results were already dropped when the table was rebuilt for a host that returns what it was sent. */
  readonly #left = new Set<string>()
  /** Objects handed over by another session. */
  readonly #allowed = new Set<string>()
  #keys = 0
  #queue: Promise<unknown> = Promise.resolve()

  constructor(manager: ContextManager, options: ProjectionOptions = {}) {
    this.#manager = manager
    this.#options = options
    const { shape } = options
    this.#shape = typeof shape === 'string' ? shapeNamed(shape) : shape
  }

  /**
   * Returns the messages to send instead of the conversation's own. Records new messages: turns, and tool results that
   * `receive` or `recordToolcall` have not recorded. What the host has changed, removed or moved since the last call is
   * sent as it is now. The cost depends on what is new, apart from comparing and copying the array.
   *
   * Rejects with `INVALID_ARGUMENT` for what is no array, for messages of an unknown shape or with an object of more than 100,000 fields, and
   * with the engine's errors. After a rejection nothing has changed here: the messages can be sent as they are, and the
   * next call records what is missing.
   */
  transform<T>(messages: readonly T[]): Promise<T[]> {
    if (!Array.isArray(messages)) return Promise.reject(invalid('messages must be an array; nothing was recorded'))
    const result = this.#queue.then(() => this.#transform(messages as readonly object[]))
    this.#queue = result.catch(() => {})
    return result as Promise<T[]>
  }

  /**
   * Whether an object may be brought back. Files may, and outputs that the host still has in its conversation, unchanged.
   * What it has changed or removed is never sent again.
   */
  async permits(name: string): Promise<boolean> {
    const document = await this.#manager.get(name.replace(/@\d+$/, ''))
    // A host may have removed a message from the middle that the record still has.
    if (document === null && SAID.test(name)) return this.#table.says(name)
    if (document?.type !== 'toolcall' || this.#allowed.has(document['xt/id'])) return true
    for (const callId of callsOf(document['xt/id'])) {
      if (this.#left.has(callId)) return true
      for (const text of this.#table.results(callId)) {
        if (this.#cut.has(`${callId} ${text}`) || (await standsFor(this.#manager, text, document))) return true
      }
    }
    return false
  }

  /** Allows bringing back an object that is not in the conversation, because another session has handed it over. */
  allow(id: string): void {
    this.#allowed.add(id)
  }

  async #transform(messages: readonly object[]): Promise<object[]> {
    const { layout } = this.#options
    const match = this.#isCertain ? this.#table.follow(messages) : undefined
    const follows = match !== undefined && match.units === this.#table.units.length
    const shape = shapeOf(messages, follows ? match.next : 0, this.#shape)
    if (layout === 'sections' && (shape ?? UNDECIDED) !== UNDECIDED) {
      throw invalid(`the layout "sections" is for pi-ai's messages; these are of the shape ${shape?.name}`)
    }
    if (follows) await this.#extend(this.#table, await this.#read(messages, match.next, shape), new Set(), shape)
    else await this.#rebuild(messages, shape)
    await this.#manager.settle()
    if (layout === 'sections') return sections(messages as Parameters<typeof sections>[0], await this.#manager.assemble())
    return this.#table.output()
  }

  #read(messages: readonly object[], from: number, shape: Shape | undefined): Promise<Unit[]> {
    const ours = (message: object): string | undefined =>
      this.#notices.size === 0 ? undefined : this.#notices.get(fingerprint(contentOf(shape ?? UNDECIDED, message)))
    guarded(() => messages.slice(from).forEach(checkWidth))
    const units = read(messages, from, shape ?? UNDECIDED, () => String((this.#keys += 1)), ours)
    return inPieces(units, (unit) => {
      for (const part of unit.parts) part.message = this.#named(part.message)
      return unit
    })
  }

  /** Adds the tool's name to a result; in some shapes only the call has it. */
  #named(message: EngineMessage): EngineMessage {
    const { role, content, toolCallId = '', toolName = '' } = message
    if (role === 'assistant' && typeof content !== 'string') {
      for (const block of content ?? []) if (block.type === 'toolCall' && 'id' in block) this.#calls.set(block.id, block as ToolCallBlock)
    }
    const name = role === 'toolResult' && toolName === '' ? this.#calls.get(toolCallId)?.name : undefined
    return name === undefined ? message : { ...message, toolName: name }
  }

  /**
   * Hands new messages to the engine, then adds them to the table. Results that the host has reworded are recorded as new
   * objects first, because the engine would take the object that it knows by the call ID.
   */
  async #extend(table: Table, fresh: readonly Unit[], reworded: ReadonlySet<Part>, shape: Shape | undefined): Promise<void> {
    this.#isCertain = false
    const edits: Plan['edits'] = []
    let waiting: IncomingMessage[] = []
    for (const part of fresh.flatMap((unit) => unit.parts)) {
      if (reworded.has(part)) {
        edits.push(...(await this.#manager.advance(waiting, this.#call(fresh, false))).edits)
        waiting = []
      }
      if (reworded.has(part) || this.#isTranslated(part.message)) await this.#receive(part.message)
      waiting.push(incoming(part))
    }
    const plan = await this.#manager.advance(waiting, this.#call(fresh, true))
    await table.add(fresh)
    table.apply([...edits, ...plan.edits])
    for (const { parts } of fresh) for (const { message } of parts) this.#noteCut(message)
    this.#say(table, plan.notices, shape)
    this.#table = table
    this.#shape = shape
    this.#isCertain = true
    if (plan.receipt !== undefined) this.#options.onRoll?.(plan.receipt)
  }

  async #receive(message: EngineMessage): Promise<void> {
    await this.#manager.receive(this.#toolcall(message))
    forgetBirth(this.#manager, message.toolCallId ?? '')
  }

  /** Whether the engine gets a result, or the arguments of its call, in another form than the record. */
  #isTranslated({ role, toolCallId = '', lines }: EngineMessage): boolean {
    if (role !== 'toolResult' || wasBorn(this.#manager, toolCallId)) return false
    const call = this.#calls.get(toolCallId)
    return lines !== undefined || (call !== undefined && isTranslated(call))
  }

  /** A result that the harness recorded itself may be shorter in the conversation than in the record. */
  #noteCut(message: EngineMessage): void {
    const { role, toolCallId = '' } = message
    if (role !== 'toolResult' || !wasBorn(this.#manager, toolCallId)) return
    this.#cut.add(`${toolCallId} ${resultText(message)}`)
    forgetBirth(this.#manager, toolCallId)
  }

  #say(table: Table, lines: readonly string[], shape: Shape | undefined): void {
    const text = [...this.#unsaid, ...lines].join('\n')
    const last = table.units.at(-1)
    this.#unsaid = last === undefined ? [...this.#unsaid, ...lines] : []
    if (text === '' || last === undefined) return
    const notice = shape === undefined ? { role: 'user', content: text } : shape.notice(text, this.#now())
    table.say(text, notice)
    this.#notices.set(fingerprint(contentOf(shape ?? UNDECIDED, notice)), text)
  }

  /** Rebuilds the visible state: at the first call, after a failed one, and when the conversation has changed. */
  async #rebuild(messages: readonly object[], shape: Shape | undefined): Promise<void> {
    const manager = this.#manager
    const wasCertain = this.#isCertain
    const old = this.#table
    const { units, seen } = await this.#recognize(messages, shape)
    if (old.isCarried) for (const callId of old.left()) this.#left.add(callId)
    this.#isCertain = false
    const boundary = (wasCertain ? undisturbed(old, units, seen) : undefined) ?? (await this.#boundary(units, seen))
    const reworded = await this.#reworded(units, seen)
    for (const part of units.slice(0, boundary).flatMap((unit) => unit.parts)) {
      if (!reworded.has(part)) continue
      await manager.recordToolcall(this.#toolcall(part.message))
      forgetBirth(manager, part.message.toolCallId ?? '')
    }
    const [known, fresh] = [units.slice(0, boundary), units.slice(boundary)]
    const table = new Table()
    await table.add(known)
    // Notices are part of what is visible. The engine repeats those that are not.
    const visible = await inPieces(known, ({ parts, notices }) => [
      ...parts.map(incoming),
      ...notices.map(({ text }) => ({ key: 'notice', message: { role: 'notice', content: text } })),
    ])
    const recorded = visible.flat()
    await manager.resync(recorded, recorded.length, this.#call(units, true))
    await this.#extend(table, fresh, reworded, shape)
    await this.#withdraw(old, table, reworded)
  }

  /** Splits the conversation into units, and finds those that the table already has in the host's original wording. */
  async #recognize(messages: readonly object[], shape: Shape | undefined): Promise<{ units: Unit[]; seen: Map<Unit, number> }> {
    const old = this.#table
    const { units: same, next } = old.follow(messages)
    const seen = new Map<Unit, number>()
    const units = old.units.slice(0, same).map((unit, index) => {
      const one = { ...renewed(unit, unit.raw), notices: unit.notices }
      seen.set(one, index)
      return one
    })
    const places = new Map(old.units.map((unit, index) => [unit, index]))
    const candidates = await old.byFingerprint(same)
    const used = new Set<Unit>()
    await inPieces(await this.#read(messages, next, shape), (unit) => {
      const known = unit.isOurs || candidates.size === 0 ? undefined : candidates.get(fingerprint(wordsOf(unit)))
      const found = known?.find((one) => !used.has(one))
      if (found === undefined) units.push(unit)
      else {
        used.add(found)
        const one = renewed(found, unit.raw)
        seen.set(one, places.get(found) as number)
        units.push(one)
      }
    })
    return { units, seen }
  }

  /** How many units are in the record. If the record diverges from the conversation, it is restored to the last common point. */
  async #boundary(units: readonly Unit[], seen: ReadonlyMap<Unit, number>): Promise<number> {
    const manager = this.#manager
    const saidIn = await inPieces(units, (unit, index) =>
      unit.parts.flatMap(({ message }) => {
        const one = saidBy(recordable(handed(message)))
        return one === undefined ? [] : [{ ...one, index }]
      }),
    )
    const said = saidIn.flat()
    let record = await recordOf(manager)
    let count = recordedOf(record, said)
    if (count === undefined) {
      await manager.restore(manager.sessionId, await lastCommon(manager, said))
      record = await recordOf(manager)
      if (!isPrefix(record, said)) {
        await manager.restore(manager.sessionId, 0)
        record = []
      }
      count = record.length
    }
    let boundary = count === 0 ? 0 : (said[count - 1]?.index ?? -1) + 1
    const objects = await this.#index()
    for (let unit = units[boundary]; unit !== undefined && (await this.#isRecorded(unit, seen, objects)); unit = units[boundary]) boundary += 1
    return boundary
  }

  /** Whether a unit that consists of results only is in the record. */
  async #isRecorded(unit: Unit, seen: ReadonlyMap<Unit, number>, objects: ReadonlySet<string>): Promise<boolean> {
    if (!unit.parts.every(({ message }) => message.role === 'toolResult')) return false
    if (seen.has(unit)) return true
    for (const { message } of unit.parts) if ((await objectFor(this.#manager, message, objects)) === undefined) return false
    return true
  }

  async #index(): Promise<ReadonlySet<string>> {
    return new Set((await this.#manager.sessionSets()).session_index)
  }

  /** The results that the record has under the same call ID, but with different text. */
  async #reworded(units: readonly Unit[], seen: ReadonlyMap<Unit, number>): Promise<Set<Part>> {
    const found = new Set<Part>()
    const objects = await this.#index()
    const parts = units.flatMap((unit) => (seen.has(unit) ? [] : unit.parts))
    for (const group of groupsOf(parts, AT_ONCE)) {
      const verdicts = await Promise.all(group.map(({ message }) => isReworded(this.#manager, message, objects)))
      for (const [place, part] of group.entries()) if (verdicts[place] === true) found.add(part)
    }
    return found
  }

  /** Removes from the pool and the active set what the host has reworded or removed. */
  async #withdraw(old: Table, now: Table, reworded: ReadonlySet<Part>): Promise<void> {
    const calls = new Set([...reworded].map(({ message }) => message.toolCallId ?? ''))
    for (const unit of old.units) {
      for (const { message } of unit.parts) {
        const { role, toolCallId = '' } = message
        if (role === 'toolResult' && !now.results(toolCallId).has(resultText(message))) calls.add(toolCallId)
      }
    }
    if (calls.size === 0) return
    const { metadata_pool, active_set, pinned_set, session_index } = await this.#manager.sessionSets()
    const index = new Set(session_index)
    const shown = new Set([...metadata_pool, ...active_set, ...pinned_set])
    for (const callId of calls) {
      for await (const document of objectsOf(this.#manager, callId, index)) {
        const id = document['xt/id']
        if (!shown.has(id) || (await this.permits(id))) continue
        await this.#manager.unpin(id)
        await this.#manager.demote(id)
      }
    }
  }

  #toolcall(message: EngineMessage): Toolcall {
    const { toolCallId = '', toolName = '', isError } = message
    return {
      id: toolCallId,
      tool: toolName === '' ? 'unknown' : toolName,
      args: this.#calls.get(toolCallId)?.arguments ?? {},
      content: resultText(message),
      status: isError === true ? 'fail' : 'ok',
    }
  }

  #call(units: readonly Unit[], isLast: boolean): ModelCall {
    const { model: given, systemTokens = 0, canRecall = true } = this.#options
    const model = (typeof given === 'function' ? given() : given) ?? UNKNOWN_MODEL
    const { input, cacheRead, cacheWrite, caches, tiers } = model
    return {
      model: model.name ?? '',
      prices: { input, cacheRead, cacheWrite, ...(caches === undefined ? {} : { caches }), ...(tiers === undefined ? {} : { tiers }) },
      ...(model.lookbackBlocks === undefined ? {} : { lookbackBlocks: model.lookbackBlocks }),
      ...(model.lookbackEndings === undefined ? {} : { lookbackEndings: model.lookbackEndings }),
      ...(model.binding === undefined ? {} : { binding: model.binding }),
      ...(model.textIsReasoning === undefined ? {} : { textIsReasoning: model.textIsReasoning }),
      contextWindow: model.contextWindow,
      cacheTtlMs: model.cacheTtlMs ?? 300_000,
      nowMs: this.#now(),
      systemTokens,
      onlyAtUserTurn: false,
      atUserTurn: units.some((unit) => unit.parts.some((part) => part.message.role === 'user')),
      ...(this.#options.shortens === true ? { shortens: true } : {}),
      rolls: isLast && this.#options.layout !== 'sections' && (typeof canRecall === 'function' ? canRecall() : canRecall),
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}
