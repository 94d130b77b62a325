/**
 * The context manager itself: the real engine, driven as by the extension, and its plans applied as Pi applies them. Replay
 * adds only Pi's own part: it keeps the branch, and makes requests from it.
 */
import type { ContextManager } from '../../session/index.ts'
import type { Edit, IncomingMessage, Plan, RollReceipt } from '../../../index.js'
import { isReference } from '../../lines/index.ts'
import { Driver, editedContent } from '../../projection/index.ts'
import type { Landmark, News, Visible as Shown, When } from '../../projection/index.ts'
import { CacheOdds, piCompaction } from '../../models/index.ts'
import { blocksOf, isSent, textOf, unitsOf } from '../../recordings/index.ts'
import type { ContentBlock, FileEvent, Message, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import { compact, Compactions } from './compaction.ts'
import type { BlockCache } from './block-cache.ts'
import { openManager } from './engine.ts'
import { LateTools } from './late-tools.ts'
import { modelCall } from './model-call.ts'
import type { Compaction, PolicyMoment, Policy, PolicyName, Request, Setting } from './policy.ts'

/** A message as the model sees it now. */
interface Visible {
  entry: RecordedEntry
  /** The message as the harness has it, with its header. */
  whole: Message
  /** The message as the engine last saw it, with earlier edits. */
  handed: Message
  blocks: ReplayBlock[]
}

/** A change to a message, valid on the branch of `leaf`. */
interface Change {
  leaf: string
  key: string
  message: Message
}

/** A point of the branch, after the message `key`. */
interface Mark extends Landmark {
  key: string
}

/** The history of a tool result, for the picture. */
export interface Lifetime {
  label: string
  units: number
  born: number
  /** The number of the first call in which it is a reference; undefined while it is visible. */
  rolled?: number
}

/** The policies `pi-context-manager` and `chosen-lifetime`, which differ in the moments they are given. */
export class Managed implements Policy {
  readonly name: PolicyName
  /** Tool results from their first call to the roll that replaced them. */
  readonly lifetimes = new Map<string, Lifetime>()
  readonly #manager: ContextManager
  readonly #driver: Driver<Mark>
  readonly #setting: Setting
  readonly #cache: BlockCache
  readonly #tools: LateTools
  /** The current branch: all of it, and what is shown of it. */
  #path: string[] = []
  #visible: Visible[] = []
  /** Messages that have not been handed over, and how many of them are on their way. */
  #pending: IncomingMessage[] = []
  #passed = 0
  #isElsewhere = false
  #hasAnswer = false
  #rolls: RollReceipt[] = []
  #changes: Change[] = []
  #notices: { leaf: string; entry: RecordedEntry }[] = []
  /** The marks to return to, by the last message of a turn. */
  readonly #points = new Map<string, Mark>()
  #moment: PolicyMoment | undefined
  /** The losses of the session's cache so far, as a host sees them. */
  readonly #odds = new CacheOdds()
  #call = 0
  /** The time of what is handed over. */
  #at = 0
  /** When the latest message came. */
  #lastAt = 0
  /** Tokens of the latest request. */
  #sent = 0
  readonly #compactions = new Compactions()
  /** Messages with their headers, kept in case the conversation returns to their branch. */
  readonly #wholes = new Map<string, Message>()
  /** Reads that were answered without the file's lines. */
  answeredReads = 0

  static async open(setting: Setting, cache: BlockCache, name: PolicyName = 'pi-context-manager'): Promise<Managed> {
    return new Managed(name, await openManager(setting), setting, cache)
  }

  private constructor(name: PolicyName, manager: ContextManager, setting: Setting, cache: BlockCache) {
    this.name = name
    this.#manager = manager
    this.#setting = setting
    this.#cache = cache
    this.#tools = new LateTools(setting)
    this.#driver = new Driver<Mark>(manager, {
      news: () => this.#news(),
      visible: (known) => this.#shown(known),
      landmarks: () => this.#path.flatMap((key) => this.#points.get(key) ?? []).reverse(),
      accepted: () => void this.#pending.splice(0, this.#passed),
      call: (when) =>
        modelCall(setting, this.#moment, {
          ...when,
          at: this.#at,
          systemUnits: this.#tools.system(this.#visible).units,
          cacheKept: this.#odds.kept({ at: this.#at, isPrompt: when.isPrompt, model: this.#moment?.model ?? '' }),
        }),
      mayRoll: () => true,
      planned: ({ receipt }) => void (receipt !== undefined && this.#rolls.push(receipt)),
      tools: {
        tokens: setting.manager.overheadTokens,
        given: () => this.#tools.areGiven,
        appends: () => this.#tools.canAppend(this.#moment),
        bound: () => this.#tools.bind(this.#moment),
        give: () => this.#tools.give(this.#path.at(-1) ?? '', this.#moment),
      },
    })
  }

  async add(entry: RecordedEntry, file: FileEvent | undefined): Promise<void> {
    const { message } = entry
    if (message.role === 'system') return
    // A turn ends when anything other than its own results follows its answer.
    if (message.role !== 'toolResult' && this.#hasAnswer) await this.#take('end', this.#lastAt)
    if (message.role === 'user') await this.#take('prompt', this.#lastAt)
    this.#lastAt = entry.at
    this.#compactions.came(entry)
    const shown = message.role === 'toolResult' ? await this.#received(entry, file) : this.#reported(message, entry.at)
    this.#show({ entry, whole: shown, handed: shown, blocks: this.#blocks(entry, shown) })
    this.#path.push(entry.key)
    if (message.role !== 'bashExecution' || isSent(message)) this.#pending.push({ key: entry.key, message: shown })
    if (message.role === 'assistant') this.#hasAnswer = true
    if (message.role === 'user') this.#say(entry.at)
  }

  async request(moment: PolicyMoment): Promise<Request> {
    this.#moment = moment
    if (this.#call === 0) this.#tools.begin(moment)
    if (this.#hasAnswer) await this.#take('end', moment.at)
    await this.#take('call', moment.at)
    this.#call += 1
    const compaction = await this.#compact(moment)
    const rolls = this.#rolls
    this.#rolls = []
    const blocks = this.#request()
    this.#sent = unitsOf(blocks) / this.#setting.unitsPerToken
    this.#answered(moment, rolls.length > 0 || compaction !== undefined)
    return { blocks, fixed: 1, rolls, ...(compaction !== undefined && { compaction }) }
  }

  async branch(path: readonly RecordedEntry[]): Promise<void> {
    if (this.#pending.length > 0) await this.#take('end', this.#moment?.at ?? 0)
    const keys = new Set(path.map((entry) => entry.key))
    const before = new Map(this.#visible.map((one) => [one.entry.key, one]))
    this.#changes = this.#changes.filter((change) => keys.has(change.leaf))
    this.#notices = this.#notices.filter((notice) => keys.has(notice.leaf))
    this.#tools.branch(keys)
    const left = this.#compactions.goOn(path)
    const { summary } = this.#compactions
    const withNotices = (entry: RecordedEntry): RecordedEntry[] => [entry, ...this.#notices.flatMap((one) => (one.leaf === entry.key ? [one.entry] : []))]
    this.#path = path.flatMap(withNotices).map(({ key }) => key)
    this.#visible = summary === undefined ? [] : [this.#summaryOf(summary)]
    for (const entry of left.flatMap(withNotices)) {
      const whole = before.get(entry.key)?.whole ?? this.#wholes.get(entry.key) ?? entry.message
      const change = this.#changes.findLast((one) => one.key === entry.key)
      const handed = change?.message ?? whole
      this.#show({ entry, whole, handed, blocks: this.#blocks(entry, handed) })
    }
    this.#pending = []
    this.#hasAnswer = false
    this.#isElsewhere = true
    await this.#take('aside', this.#moment?.at ?? 0)
  }

  async close(): Promise<void> {
    await this.#manager.close()
  }

  /** Counts whether the call found its cache when it was recorded. */
  #answered({ at, model, record, lifetimeMs = this.#setting.cache.lifetimeMs }: PolicyMoment, isChanged: boolean): void {
    const isPrompt = this.#visible.at(-1)?.entry.message.role !== 'toolResult'
    const [prompt, cached] = [this.#sent, (record?.lost ?? 0) > 0 ? 0 : this.#sent]
    this.#odds.answered({ at, isPrompt, model, prompt, cached, written: prompt - cached, systemTokens: this.#setting.systemTokens, isChanged, lifetimeMs })
  }

  /** Returns the request to send now. */
  #request(): ReplayBlock[] {
    return this.#tools.request(this.#visible)
  }

  #news(): News {
    if (this.#isElsewhere) return { is: 'elsewhere' }
    this.#passed = this.#pending.length
    return { is: 'new', messages: this.#pending.slice() }
  }

  #shown(known: 'kept' | Mark | undefined): Shown {
    this.#isElsewhere = false
    const pending = new Set(this.#pending.map(({ key }) => key))
    const kept = this.#path.filter((key) => !pending.has(key))
    const before = new Set(known === 'kept' ? kept : known === undefined ? [] : this.#path.slice(0, this.#path.indexOf(known.key) + 1))
    const messages = this.#visible.flatMap((one) => {
      const change = this.#changes.findLast((change) => change.key === one.entry.key)
      // The engine's next edits apply to this form of the message.
      one.handed = change?.message ?? one.whole
      return isSent(one.handed) && !hasLeft(one.handed) ? [{ key: one.entry.key, message: one.handed }] : []
    })
    // A compaction comes first and is not part of the record.
    let recorded = Math.max(0, this.#compactions.summary === undefined ? 0 : messages.findIndex(({ key }) => before.has(key)))
    while (before.has(messages[recorded]?.key ?? '')) recorded += 1
    this.#passed = this.#pending.length
    return { messages, recorded }
  }

  /** The engine learns from usage, but the reported usage belongs to the recorded request, so it is replaced. */
  #reported(recorded: Message, at: number): Message {
    if (recorded.role !== 'assistant') return recorded
    // The time that Pi stamps on its answers: from then on the provider caches the request's prefix.
    const message = { ...recorded, timestamp: at }
    const { usage } = message
    if (usage === undefined || usage.input + usage.cacheRead + usage.cacheWrite === 0) return message
    const input = Math.round(this.#sent)
    return {
      ...message,
      usage: { input, output: usage.output, cacheRead: 0, cacheWrite: 0, totalTokens: input + usage.output },
    }
  }

  async #received(entry: RecordedEntry, file: FileEvent | undefined): Promise<Message> {
    const { message } = entry
    const call = this.#cache.calls.of(message.toolCallId)
    let content = textOf(message)
    let answered: string | undefined
    if (file?.kind === 'read') {
      await this.#manager.indexFile(file.path, Buffer.from(file.content), message.toolCallId)
      answered = (await this.#manager.answerRead(file.path, file.offset, file.limit, message.toolCallId)) ?? undefined
      if (answered !== undefined) this.answeredReads += 1
    } else if (file?.kind === 'written') {
      await this.#manager.indexWritten(file.path, Buffer.from(file.content), message.toolCallId)
    }
    content = answered ?? content
    const { header } = await this.#manager.receive({
      id: message.toolCallId ?? '',
      tool: message.toolName ?? call?.name ?? 'unknown',
      args: call?.args ?? {},
      content,
      status: message.isError === true ? 'fail' : 'ok',
    })
    const blocks = Array.isArray(message.content) ? message.content : [{ type: 'text', text: content }]
    const texts = answered === undefined ? blocks : [{ type: 'text', text: answered }]
    const whole = { ...message, content: header === undefined ? texts : withHeader(texts, header) }
    this.#wholes.set(entry.key, whole)
    return whole
  }

  /** Hands over what is new, and applies the plan. */
  async #take(when: When, at: number): Promise<void> {
    this.#at = at
    const plan = await this.#driver.take(when, when === 'prompt')
    if (when !== 'prompt') this.#hasAnswer = false
    if (plan !== undefined) await this.#apply(plan)
    // Notices of before a prompt stand behind it.
    if (when !== 'prompt') this.#say(at)
  }

  async #apply(plan: Plan): Promise<void> {
    const leaf = this.#path.at(-1) ?? ''
    for (const edit of plan.edits) {
      const one = this.#visible.find(({ entry }) => entry.key === edit.key)
      if (one === undefined) throw new Error(`the engine's plan edits a message that is not there: ${edit.key}`)
      const message = edited(edit, one.handed)
      one.blocks = this.#blocks(one.entry, message)
      this.#changes.push({ leaf, key: edit.key, message })
      const lifetime = this.#lifetimes(edit)
      const isAway = edit.kind === 'gone' || (edit.kind === 'result' && isReference(edit.text ?? ''))
      if (lifetime !== undefined && isAway) lifetime.rolled ??= this.#call
    }
    if (leaf !== '') this.#points.set(leaf, { key: leaf, point: await this.#driver.point(plan) })
  }

  /** Adds the pending notices to the conversation. */
  #say(at: number): void {
    const lines = this.#driver.takeNotices()
    if (lines.length === 0) return
    const leaf = this.#path.at(-1) ?? ''
    const message: Message = { role: 'custom', content: lines.join('\n') }
    const entry = { key: `notice-${this.#notices.length}-${leaf}`, message, at }
    this.#notices.push({ leaf, entry })
    this.#show({ entry, whole: message, handed: message, blocks: this.#blocks(entry, message) })
    this.#path.push(entry.key)
    this.#pending.push({ key: entry.key, message })
  }

  #summaryOf(entry: RecordedEntry): Visible {
    return { entry, whole: entry.message, handed: entry.message, blocks: this.#cache.of(entry) }
  }

  #lifetimes(edit: Edit): Lifetime | undefined {
    return edit.kind === 'message' ? undefined : this.lifetimes.get(edit.key)
  }

  /** Pi's own compaction, if a roll does not make enough room. */
  async #compact(moment: PolicyMoment): Promise<Compaction | undefined> {
    const most = piCompaction(this.#setting.window).limit
    const tokens = unitsOf(this.#request()) / this.#setting.unitsPerToken
    if (tokens <= most) return undefined
    const { receipt, ...plan } = await this.#driver.roll()
    await this.#apply(plan)
    if (receipt !== undefined && tokens - receipt.removedTokens <= most) return undefined
    const done = compact(
      this.#visible.map((one) => one.entry),
      this.#cache,
      this.#setting,
      this.#compactions.count,
    )
    if (done === undefined) return undefined
    this.#compactions.made(done)
    const kept = new Set(done.kept)
    this.#visible = [this.#summaryOf(done.summary), ...this.#visible.filter((one) => kept.has(one.entry))]
    await this.#driver.compacted()
    await this.#take('call', moment.at)
    return done.cost
  }

  #show(one: Visible): void {
    this.#visible.push(one)
    const { key, message } = one.entry
    if (message.role === 'toolResult' && !this.lifetimes.has(key)) {
      this.lifetimes.set(key, { label: message.toolName ?? '', units: unitsOf(one.blocks), born: this.#call })
    }
  }

  #blocks(entry: RecordedEntry, message: Message): ReplayBlock[] {
    if (hasLeft(message)) return []
    if (message.content === entry.message.content) return this.#cache.of(entry)
    this.#cache.calls.add(entry.message)
    return isSent(message) ? this.#cache.sized(entry.key, blocksOf({ key: entry.key, message }, this.#cache.calls)).map(onlyWhole(message)) : []
  }
}

function withHeader(content: ContentBlock[], header: string): ContentBlock[] {
  const first = content.findIndex((block) => block.type === 'text')
  return content.map((block, index) => (index === first ? { ...block, text: `${header}\n${block.text}` } : block))
}

/** A message with an edit in force. */
function edited(edit: Edit, message: Message): Message {
  const content = editedContent(edit, message)
  if (content === null) return { ...message, left: true }
  return content === undefined ? message : { ...message, content: content as ContentBlock[] }
}

/** True if an edit has left a message out. */
function hasLeft(message: Message): boolean {
  return message['left'] === true
}

/** Returns what has become a reference no longer shows its file. */
function onlyWhole(message: Message): (block: ReplayBlock) => ReplayBlock {
  const reference = message.role === 'toolResult' && isReference(textOf(message))
  return (block) => {
    if (!reference) return block
    const { path: _, ...rest } = block
    return rest
  }
}
