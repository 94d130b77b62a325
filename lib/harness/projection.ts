/**
 * The projection: what a harness sends in place of its conversation. New messages go to the engine, once; what the engine
 * says of them is kept in a table and applied to the host's own messages at each call.
 */
import type { ContextManager, IncomingMessage, ModelCall, ModelPrices, Plan, RollReceipt, Toolcall } from '../../index.js'
import { invalid } from '../errors.ts'
import { sections } from '../sections.ts'
import { forgetBirth, wasBorn } from './births.ts'
import { handed, incoming, isTranslated } from './crossing.ts'
import { fingerprint } from './identity.ts'
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

/** The model that the projection is made for. */
export interface ProjectedModel extends ModelPrices {
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** How long the provider keeps a prompt prefix, in milliseconds. Default 300,000. */
  cacheTtlMs?: number
  /** The model's name. Another one than before has a cold cache. */
  name?: string
  /** How many content blocks back the provider looks for a cached prefix: 20 for Anthropic's API. */
  lookbackBlocks?: number
}

/** How a projection is made. */
export interface ProjectionOptions {
  /**
   * `anchored` (default): outputs stay where they appeared until a roll pays. `sections`: the canonical four sections,
   * rendered anew at each call; for pi-ai's messages.
   */
  layout?: 'anchored' | 'sections'
  /** The model in use; a function where it may change. Without one, prices of 0.1 (read) and 1 (write) are assumed. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** Estimated tokens of system prompt and tool declarations. Default 0. */
  systemTokens?: number
  /** The shape of the messages; default: what the messages themselves say. A host may bring a shape of its own. */
  shape?: ShapeName | Shape
  /**
   * Whether the model can bring back what collapses; a function where that may change. Nothing collapses while it can't.
   * Default true: the harness gives the model `activate` as a tool.
   */
  canRecall?: boolean | (() => boolean)
  /**
   * Whether old reasoning may leave, prose and long texts of users may be shortened, and old calls may become one line
   * each, besides outputs and arguments. Not for a harness that stores what it is given in place of its own messages and
   * hands that over to a later process: there it would be taken for what was said. The engine makes no such edits yet.
   * Default false.
   */
  shortens?: boolean
  /** Told of each roll. */
  onRoll?: (receipt: RollReceipt) => void
  /** Milliseconds since the epoch; for tests and replays. Default `Date.now`. */
  now?: () => number
}

/** How many objects are asked for at once. */
const AT_ONCE = 64

/** The ID of something that was said. */
const SAID = /^[0-9a-f]{11}$/

const UNKNOWN_MODEL: ProjectedModel = { contextWindow: 0, input: 0, cacheRead: 0, cacheWrite: 0 }

/** The projection of one session's messages. Calls act one after the other. */
export class Projection {
  readonly #manager: ContextManager
  readonly #options: ProjectionOptions
  #shape: Shape | undefined
  #table = new Table()
  /** The engine has exactly what the table has. Not so before the first call, and after one that failed. */
  #isCertain = false
  /** Words of ours that were sent: a host may carry them forward as if they were its own. */
  readonly #notices = new Map<string, string>()
  /** Words that had no place yet. */
  #unsaid: string[] = []
  /** The latest call of each ID. */
  readonly #calls = new Map<string, ToolCallBlock>()
  /** Results that the harness has cut after it had recorded all of them: call ID and text. */
  readonly #cut = new Set<string>()
  /** Calls whose results had left when a host that carries forward what was sent made the table be built anew. */
  readonly #left = new Set<string>()
  /** Objects that another session has handed over. */
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
   * What to send in place of a conversation's messages. New messages are recorded: turns, and tool results that were
   * not recorded by `receive` or `recordToolcall`. What the host has changed, taken out or put elsewhere since the last
   * call is sent as the host has it now. Its cost follows what is new, besides comparing and copying the array.
   *
   * Rejects with `INVALID_ARGUMENT` for messages of an unknown shape, and with what the engine reports; then nothing
   * has changed here, the messages can be sent as they are, and the next call records what is missing.
   */
  transform<T>(messages: readonly T[]): Promise<T[]> {
    const result = this.#queue.then(() => this.#transform(messages as readonly object[]))
    this.#queue = result.catch(() => {})
    return result as Promise<T[]>
  }

  /**
   * Whether an object may be brought back: files, and the outputs that the host still has in its conversation in the
   * same wording. What it has changed or taken out is never sent again.
   */
  async permits(name: string): Promise<boolean> {
    const document = await this.#manager.get(name.replace(/@\d+$/, ''))
    // Hosts take things out of the middle; the record has what was said until it is written anew.
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

  /** Lets an object be brought back that is not in the conversation: another session has handed it over. */
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
    const units = read(messages, from, shape ?? UNDECIDED, () => String((this.#keys += 1)), ours)
    return inPieces(units, (unit) => {
      for (const part of unit.parts) part.message = this.#named(part.message)
      return unit
    })
  }

  /** A result with the name of its tool, which some shapes have in the call only. */
  #named(message: EngineMessage): EngineMessage {
    const { role, content, toolCallId = '', toolName = '' } = message
    if (role === 'assistant' && typeof content !== 'string') {
      for (const block of content ?? []) if (block.type === 'toolCall' && 'id' in block) this.#calls.set(block.id, block as ToolCallBlock)
    }
    const name = role === 'toolResult' && toolName === '' ? this.#calls.get(toolCallId)?.name : undefined
    return name === undefined ? message : { ...message, toolName: name }
  }

  /**
   * Hands over what is new, and puts it into the table when the engine has it. Results that the host has reworded become
   * objects of their own first: the engine would take the one that it knows by the call's ID.
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

  /** Whether the engine is handed a result, or its call, in other words than the host's. */
  #isTranslated({ role, toolCallId = '', lines }: EngineMessage): boolean {
    if (role !== 'toolResult' || wasBorn(this.#manager, toolCallId)) return false
    const call = this.#calls.get(toolCallId)
    return lines !== undefined || (call !== undefined && isTranslated(call))
  }

  /** A result that the harness had recorded by itself may be shorter in the conversation than in the record. */
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

  /** A first call, a call after one that failed, or a conversation that was changed: what is visible is built anew. */
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
    // Our own words are among what is visible: the engine says again what is not.
    const visible = await inPieces(known, ({ parts, notices }) => [
      ...parts.map(incoming),
      ...notices.map(({ text }) => ({ key: 'notice', message: { role: 'notice', content: text } })),
    ])
    const recorded = visible.flat()
    await manager.resync(recorded, recorded.length, this.#call(units, true))
    await this.#extend(table, fresh, reworded, shape)
    await this.#withdraw(old, table, reworded)
  }

  /** The conversation in units, and which of them the table has already, with the wording that the host had first. */
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

  /** How many units the record has. Where it went another way than the conversation, it is taken back to the last common point. */
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

  /** Whether a unit with nothing but results is in the record. */
  async #isRecorded(unit: Unit, seen: ReadonlyMap<Unit, number>, objects: ReadonlySet<string>): Promise<boolean> {
    if (!unit.parts.every(({ message }) => message.role === 'toolResult')) return false
    if (seen.has(unit)) return true
    for (const { message } of unit.parts) if ((await objectFor(this.#manager, message, objects)) === undefined) return false
    return true
  }

  async #index(): Promise<ReadonlySet<string>> {
    return new Set((await this.#manager.sessionSets()).session_index)
  }

  /** The results that the session has recorded under their call's ID, but in other words. */
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

  /** Takes out of pool and active set what the host has reworded or taken out. */
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
    const { input, cacheRead, cacheWrite, caches } = model
    return {
      model: model.name ?? '',
      prices: { input, cacheRead, cacheWrite, ...(caches === undefined ? {} : { caches }) },
      ...(model.lookbackBlocks === undefined ? {} : { lookbackBlocks: model.lookbackBlocks }),
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
