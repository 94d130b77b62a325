/**
 * Counts uses of text that policies hide: how often a recorded answer quotes or names text that was in sight when it
 * was recorded and is nowhere in a policy's request. The model's behaviour without that text is unknown: it
 * might ask for it, or continue from memory.
 */
import { keysShown, unitsOf } from '../../recordings/index.ts'
import type { BranchStep, Calls, Message, Prices, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import type { PolicyName } from '../policies/policy.ts'
import { partsOf, Reader, textsOf } from './answer.ts'
import { isProbablyHarm, OpenUse } from './harm.ts'
import type { OwnPhrases } from './phrases.ts'
import { Shown } from './shown.ts'
import { kindOf, OWN_WORDS, Sources, SUMMARY } from './sources.ts'
import type { Source } from './sources.ts'
import { classify, count, isStrong, noUses } from './uses.ts'
import type { MissedUses } from './uses.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Tokens of an answer that asks for an output. */
const ASKING_TOKENS = 60

/** The most that is fetched of an output, in UTF-16 units. */
const MAX_FETCHED_UNITS = 10_000

/** Number of calls for which fetched text stays. */
const STAY_CALLS = 10

/** The settings that are the same for a whole session. */
interface MeterSetting {
  cwd: string
  unitsPerToken: number
  /** The quotes and names in the answers of the session. */
  vocabulary: Vocabulary
  /** Phrases that models write on their own; undefined if only one session is known. */
  phrases: OwnPhrases | undefined
  /** Gets each strong use of tool text: the policy, the answer, and whether it probably harms. */
  onMissed?: ((policy: PolicyName, answer: Message, harms: boolean) => void) | undefined
  /** The calls of the recording, by ID. */
  calls: Calls
}

/** The request that a policy had sent when the recorded answer came. */
export interface Sent {
  name: PolicyName
  blocks: readonly ReplayBlock[]
  prices: Prices
}

/** Missed uses of one policy, and what it would cost to fetch the texts of all strong ones. */
export interface Missed {
  uses: MissedUses
  /** In millionths of the unit of prices per million tokens, like the cost of a policy. */
  fetchCost: number
}

/** Missed uses in one session, policy by policy. */
export class Meter {
  readonly #setting: MeterSetting
  readonly #reader: Reader
  readonly #sources: Sources
  readonly #ids = new WeakMap<ReplayBlock, Uint32Array>()
  readonly #lanes = new Map<PolicyName, Lane>()
  #call = 0
  #turn = 0
  #summaries = 0

  constructor(setting: MeterSetting) {
    this.#setting = setting
    this.#reader = new Reader(setting.vocabulary, setting.cwd)
    this.#sources = new Sources(setting.vocabulary.size)
  }

  /** An answer is about to be added to the conversation; `sent` is what each policy has sent for it. */
  answer(message: Message, sent: readonly Sent[]): void {
    const parts = partsOf(message).map(({ use, texts }) => ({ use, ids: this.#reader.ids(texts) }))
    for (const one of sent) {
      const lane = this.#lane(one.name)
      lane.shown.set(one.blocks)
      if (lane.turn !== this.#turn) {
        lane.turn = this.#turn
        lane.back.clear()
      }
      this.#hold(lane, one, parts, message)
    }
    this.#call += 1
    for (const lane of this.#lanes.values()) {
      this.#classify(
        lane,
        lane.open.filter(({ use }) => use.isOver(this.#call)),
      )
      lane.open = lane.open.filter(({ use }) => !use.isOver(this.#call))
    }
  }

  /** A message was added to the conversation. */
  message(entry: RecordedEntry, blocks: readonly ReplayBlock[]): void {
    if (entry.message.role === 'user') this.#turn += 1
    for (const block of blocks) this.#see(entry, block)
  }

  /** The recorded program replaced everything before a message with a summary. */
  compaction(firstKept: string | undefined, summary: ReplayBlock): void {
    this.#sources.from(firstKept)
    this.#summary(summary)
  }

  /** The recorded conversation continued from an earlier point; `summary` is that of its newest compaction. */
  branch(step: BranchStep, summary: ReplayBlock | undefined): void {
    this.#sources.only(keysShown(step))
    if (summary !== undefined) this.#summary(summary)
  }

  /** The sums of one policy. */
  missed(name: PolicyName): Missed {
    const lane = this.#lane(name)
    this.#classify(lane, lane.open)
    lane.open = []
    return { uses: lane.uses, fetchCost: lane.fetchCost }
  }

  #classify(lane: Lane, over: readonly { use: OpenUse; answer: Message }[]): void {
    for (const { use, answer } of over) {
      classify(lane.uses, use.class)
      this.#setting.onMissed?.(lane.policy, answer, isProbablyHarm(use.class))
    }
  }

  /** Compares an answer with what a policy shows. */
  #hold(lane: Lane, sent: Sent, parts: readonly { use: string; ids: Uint32Array }[], answer: Message): void {
    const events = new Map<string, Event>()
    for (const { use, ids } of parts) {
      for (const id of ids) {
        if (lane.shown.has(id)) continue
        const source = this.#missing(id, lane)
        if (source === undefined) continue
        const event = events.get(source.key) ?? { source, quotes: new Set(), names: new Set(), where: new Map() }
        events.set(source.key, event)
        if (this.#setting.vocabulary.isName(id)) event.names.add(id)
        else event.quotes.add(id)
        event.where.set(use, (event.where.get(use) ?? 0) + 1)
      }
    }
    for (const [key, { source, quotes, names, where }] of events) {
      // An agent that misses a text gets it back for the rest of the user's turn.
      lane.back.add(key)
      const use = { quotes: quotes.size, names: names.size, where: new Set(where.keys()) }
      const ownWords = OWN_WORDS.has(source.kind)
      count(lane.uses, { ...use, kind: source.kind, ownWords, age: this.#call - source.born + 1 })
      if (!isStrong(use)) continue
      lane.fetchCost += this.#fetchCost(source, sent)
      if (!ownWords) lane.open.push({ use: new OpenUse(source, this.#call, where, quotes, names), answer })
    }
  }

  /** The newest source of what a policy does not show; undefined if the agent had it from elsewhere. */
  #missing(id: number, lane: Lane): Source | undefined {
    let newest: Source | undefined
    for (const source of this.#sources.with(id)) {
      if (source.kind === SUMMARY || lane.back.has(source.key)) return undefined
      newest ??= source
    }
    const [high, low] = this.#setting.vocabulary.hash(id)
    return newest === undefined || this.#setting.phrases?.has(high, low) === true ? undefined : newest
  }

  /** The cost of a call with the whole prompt that asks for the text, of the text, and of keeping it. */
  #fetchCost({ units }: Source, { blocks, prices }: Sent): number {
    const { unitsPerToken } = this.#setting
    const prompt = unitsOf(blocks) / unitsPerToken
    const text = Math.min(units, MAX_FETCHED_UNITS) / unitsPerToken
    const { cacheRead, cacheWrite, output } = prices
    return (prompt * cacheRead + ASKING_TOKENS * output + text * (cacheWrite + STAY_CALLS * cacheRead)) / 1_000_000
  }

  #see(entry: RecordedEntry, block: ReplayBlock): void {
    const texts = textsOf(block)
    const kind = kindOf(entry, block.label, this.#setting.calls)
    const units = texts.reduce((sum, text) => sum + text.length, 0)
    const isResult = entry.message.role === 'toolResult'
    const path = block.path ?? (isResult ? this.#setting.calls.of(entry.message.toolCallId)?.path : undefined)
    const ids = this.#idsOf(block)
    this.#sources.add({ key: entry.key, kind, path, born: this.#call, units, isShown: true }, ids)
    if (!isResult) return
    for (const lane of this.#lanes.values()) for (const { use } of lane.open) use.result(kind, path, this.#call, ids)
  }

  #summary(block: ReplayBlock): void {
    this.#summaries += 1
    const key = `recorded-summary-${this.#summaries}`
    const units = block.units
    this.#sources.add({ key, kind: SUMMARY, born: this.#call, units, isShown: true }, this.#idsOf(block))
  }

  #idsOf(block: ReplayBlock): Uint32Array {
    let ids = this.#ids.get(block)
    if (ids === undefined) this.#ids.set(block, (ids = this.#reader.ids(textsOf(block))))
    return ids
  }

  #lane(name: PolicyName): Lane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      const shown = new Shown(this.#setting.vocabulary.size, (block) => this.#idsOf(block))
      lane = { policy: name, shown, turn: this.#turn, back: new Set(), uses: noUses(), fetchCost: 0, open: [] }
      this.#lanes.set(name, lane)
    }
    return lane
  }
}

/** The known state of one policy. */
interface Lane {
  policy: PolicyName
  shown: Shown
  turn: number
  /** Messages whose text the agent has back in this user turn, by key. */
  back: Set<string>
  uses: MissedUses
  fetchCost: number
  /** Strong uses of tool text whose class is not known yet. */
  open: { use: OpenUse; answer: Message }[]
}

/** The quotes and names of one message that one answer used. */
interface Event {
  source: Source
  quotes: Set<number>
  names: Set<number>
  /** The number of them in each place of the answer. */
  where: Map<string, number>
}
