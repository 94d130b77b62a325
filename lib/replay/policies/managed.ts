/**
 * The context manager itself: the real engine receives each message as it does from the extension, and its plans are
 * applied as Pi applies them.
 */
import { ContextManager } from '../../index.ts'
import type { Edit, IncomingMessage, ModelCall, Plan, RollReceipt } from '../../index.ts'
import { blocksOf, systemBlock, unitsOf } from '../blocks.ts'
import type { Block } from '../blocks.ts'
import type { FileEvent } from '../files.ts'
import { isSent, textOf } from '../recording.ts'
import { shortened } from '../../shortened.ts'
import type { ContentBlock, Entry, Message } from '../recording.ts'
import { compact, Compactions } from './compaction.ts'
import { RESERVE_TOKENS } from './conversation.ts'
import type { BlockCache } from './block-cache.ts'
import type { Compaction, Moment, Policy, Request, Setting } from './policy.ts'

/** The start of the line that replaces an output. */
const REFERENCE = 'toolcall_ref '

/** The share of a session's cost so far that the tools may take, as in the extension. */
const TOOLS_WORTH = 0.01

/** The highest known price of writing a token to the cache, in fresh input tokens, as in the extension. */
const TOOLS_WRITE = 1.25

/** A message as the model sees it now. */
interface Visible {
  entry: Entry
  /** The message as the harness has it, with its header. */
  whole: Message
  /** The message as the engine last saw it, with earlier edits. */
  handed: Message
  blocks: Block[]
}

/** A change to a message, valid on the branch of `leaf`. */
interface Change {
  leaf: string
  key: string
  message: Message
}

/** What happened to a tool result, for the picture. */
export interface Lifetime {
  label: string
  units: number
  born: number
  /** The number of the first call in which it is a reference; undefined while it is visible. */
  rolled?: number
}

/** Opens the engine as the extension does, on a separate store; files on this disk are never accessed. */
export function openManager(setting: Setting): Promise<ContextManager> {
  return ContextManager.open({
    sessionId: setting.sessionId,
    cwd: setting.cwd,
    store:
      setting.store === undefined
        ? { kind: 'memory' }
        : { kind: 'sqlite', path: setting.store, durability: 'process' },
    window: { perTurn: setting.manager.perTurn, turnsBack: setting.manager.turnsBack },
    filesystemId: 'replay',
    watch: false,
    watchUnmapped: false,
    home: '/',
    ...setting.manager.open,
  })
}

/** The policy `pi-context-manager`. */
export class Managed implements Policy {
  readonly name = 'pi-context-manager'
  /** Tool results from their first call to the roll that replaced them. */
  readonly lifetimes = new Map<string, Lifetime>()
  readonly #manager: ContextManager
  readonly #setting: Setting
  readonly #cache: BlockCache
  /** What precedes the messages, without and with the context manager's tools. */
  readonly #systems: readonly [plain: Block, tools: Block]
  #hasTools = false
  /** Whether something has collapsed yet. */
  #collapsed = false
  #visible: Visible[] = []
  #pending: IncomingMessage[] = []
  #hasAnswer = false
  #rolls: RollReceipt[] = []
  #changes: Change[] = []
  #notices: { leaf: string; entry: Entry }[] = []
  /** The engine's point after each turn, by the turn's last message. */
  readonly #points = new Map<string, number>()
  #moment: Moment | undefined
  #call = 0
  /** When the latest message came. */
  #lastAt = 0
  /** Tokens of the latest request. */
  #sent = 0
  readonly #compactions = new Compactions()
  /** Reads that were answered without the file's lines. */
  answeredReads = 0

  static async open(setting: Setting, cache: BlockCache): Promise<Managed> {
    return new Managed(await openManager(setting), setting, cache)
  }

  private constructor(manager: ContextManager, setting: Setting, cache: BlockCache) {
    this.#manager = manager
    this.#setting = setting
    this.#cache = cache
    const { systemTokens, unitsPerToken, manager: own } = setting
    this.#systems = [
      systemBlock('', systemTokens * unitsPerToken),
      systemBlock('with the tools of the context manager', (systemTokens + own.overheadTokens) * unitsPerToken),
    ]
  }

  get #system(): Block {
    return this.#systems[this.#hasTools ? 1 : 0]
  }

  async add(entry: Entry, file: FileEvent | undefined): Promise<void> {
    const { message } = entry
    if (message.role === 'system') return
    // A turn ends when anything other than its own results follows its answer.
    if (message.role !== 'toolResult' && this.#hasAnswer) await this.#advance(this.#lastAt, false)
    this.#lastAt = entry.at
    this.#compactions.came(entry)
    const shown = message.role === 'toolResult' ? await this.#received(entry, file) : this.#reported(message, entry.at)
    this.#show({ entry, whole: shown, handed: shown, blocks: this.#blocks(entry, shown) })
    if (message.role !== 'bashExecution' || isSent(message)) this.#pending.push({ key: entry.key, message: shown })
    if (message.role === 'assistant') this.#hasAnswer = true
  }

  async request(moment: Moment): Promise<Request> {
    this.#moment = moment
    const atUserTurn = this.#pending.some(({ message }) => (message as Message).role === 'user')
    await this.#advance(moment.at, atUserTurn)
    this.#call += 1
    const rolls = this.#rolls
    this.#rolls = []
    const compaction = await this.#compact(moment)
    const blocks = [this.#system, ...this.#visible.flatMap((one) => one.blocks)]
    this.#sent = unitsOf(blocks) / this.#setting.unitsPerToken
    return { blocks, fixed: 1, rolls, ...(compaction !== undefined && { compaction }) }
  }

  async branch(path: readonly Entry[]): Promise<void> {
    if (this.#pending.length > 0) await this.#advance(this.#moment?.at ?? 0, false)
    const keys = new Set(path.map((entry) => entry.key))
    const before = new Map(this.#visible.map((one) => [one.entry.key, one]))
    this.#changes = this.#changes.filter((change) => keys.has(change.leaf))
    this.#notices = this.#notices.filter((notice) => keys.has(notice.leaf))
    const left = this.#compactions.goOn(path)
    const { summary } = this.#compactions
    const entries = left.flatMap((entry) => [
      entry,
      ...this.#notices.flatMap((notice) => (notice.leaf === entry.key ? [notice.entry] : [])),
    ])
    this.#visible =
      summary === undefined ? [] : [this.#summaryOf(summary)]
    for (const entry of entries) {
      const whole = before.get(entry.key)?.whole ?? this.#wholes.get(entry.key) ?? entry.message
      const change = this.#changes.findLast((one) => one.key === entry.key)
      const handed = change?.message ?? whole
      this.#show({ entry, whole, handed, blocks: this.#blocks(entry, handed) })
    }
    const point = path.findLast((entry) => this.#points.has(entry.key))
    if (point !== undefined)
      await this.#manager.restore(this.#manager.sessionId, this.#points.get(point.key) as number)
    await this.#resync()
  }

  close(): Promise<void> {
    return this.#manager.close()
  }

  /** Messages with their headers, kept in case the conversation returns to their branch. */
  readonly #wholes = new Map<string, Message>()

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

  async #received(entry: Entry, file: FileEvent | undefined): Promise<Message> {
    const { message } = entry
    const call = this.#cache.calls.of(message.toolCallId)
    let content = textOf(message)
    let answered: string | undefined
    if (file?.kind === 'read') {
      await this.#manager.indexFile(file.path, Buffer.from(file.content))
      answered = (await this.#manager.answerRead(file.path, file.offset, file.limit)) ?? undefined
      if (answered !== undefined) this.answeredReads += 1
    } else if (file?.kind === 'written') {
      await this.#manager.indexWritten(file.path, Buffer.from(file.content))
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

  async #advance(at: number, atUserTurn: boolean): Promise<void> {
    if (this.#pending.length === 0) return
    const messages = this.#pending
    this.#pending = []
    this.#hasAnswer = false
    const plan = await this.#manager.advance(messages, this.#callAt(at, atUserTurn, true))
    const leaf = messages.at(-1)?.key ?? ''
    this.#apply(plan, leaf, at)
    if (plan.edits.length > 0) this.#collapsed = true
    if (plan.edits.length > 0 || (this.#collapsed && atUserTurn)) this.#bringTools(plan)
    this.#points.set(leaf, await this.#manager.point())
  }

  /** Adds the tools as the extension does: once something has collapsed and their share of the cost is small. */
  #bringTools({ rewriteCost, spent }: Plan): void {
    const price = rewriteCost + this.#setting.manager.overheadTokens * TOOLS_WRITE
    if (price <= TOOLS_WORTH * spent) this.#hasTools = true
  }

  #apply(plan: Plan, leaf: string, at: number): void {
    for (const edit of plan.edits) {
      const one = this.#visible.find(({ entry }) => entry.key === edit.key)
      if (one === undefined) throw new Error(`the engine's plan edits a message that is not there: ${edit.key}`)
      const message = edited(edit, one.handed)
      one.blocks = this.#blocks(one.entry, message)
      this.#changes.push({ leaf, key: edit.key, message })
      const lifetime = this.#lifetimes(edit)
      const isAway = edit.kind === 'gone' || (edit.kind === 'result' && edit.text?.startsWith(REFERENCE) === true)
      if (lifetime !== undefined && isAway) lifetime.rolled ??= this.#call
    }
    if (plan.receipt !== undefined) this.#rolls.push(plan.receipt)
    if (plan.notices.length === 0) return
    const message: Message = { role: 'custom', content: plan.notices.join('\n') }
    const entry = { key: `notice-${this.#notices.length}-${leaf}`, message, at }
    this.#notices.push({ leaf, entry })
    this.#show({ entry, whole: message, handed: message, blocks: this.#blocks(entry, message) })
    this.#pending.push({ key: entry.key, message })
  }

  #summaryOf(entry: Entry): Visible {
    return { entry, whole: entry.message, handed: entry.message, blocks: this.#cache.of(entry) }
  }

  #lifetimes(edit: Edit): Lifetime | undefined {
    return edit.kind === 'message' ? undefined : this.lifetimes.get(edit.key)
  }

  /** Pi's own compaction, if it is still needed. */
  async #compact(moment: Moment): Promise<Compaction | undefined> {
    const { window, unitsPerToken } = this.#setting
    const units = this.#system.units + this.#visible.reduce((sum, one) => sum + unitsOf(one.blocks), 0)
    if (units / unitsPerToken <= window - RESERVE_TOKENS) return undefined
    const done = compact(
      this.#visible.map((one) => one.entry),
      this.#cache,
      this.#setting,
      this.#compactions.count,
    )
    if (done === undefined) return undefined
    this.#compactions.made(done)
    const kept = new Set(done.kept)
    const { summary } = done
    this.#visible = this.#visible.filter((one) => kept.has(one.entry))
    this.#visible.unshift(this.#summaryOf(summary))
    this.#moment = moment
    await this.#resync()
    return done.cost
  }

  async #resync(): Promise<void> {
    this.#pending = []
    this.#hasAnswer = false
    const messages = this.#visible.flatMap((one) => {
      const change = this.#changes.findLast((change) => change.key === one.entry.key)
      const message = change?.message ?? one.whole
      // The engine's next edits apply to this form of the message.
      one.handed = message
      return isSent(message) && !hasLeft(message) ? [{ key: one.entry.key, message }] : []
    })
    const at = this.#moment?.at ?? 0
    const plan = await this.#manager.resync(messages, messages.length, this.#callAt(at, false, false))
    this.#apply(plan, messages.at(-1)?.key ?? '', at)
  }

  #show(one: Visible): void {
    this.#visible.push(one)
    const { key, message } = one.entry
    if (message.role === 'toolResult' && !this.lifetimes.has(key)) {
      this.lifetimes.set(key, { label: message.toolName ?? '', units: unitsOf(one.blocks), born: this.#call })
    }
  }

  #blocks(entry: Entry, message: Message): Block[] {
    if (hasLeft(message)) return []
    if (message.content === entry.message.content) return this.#cache.of(entry)
    this.#cache.calls.add(entry.message)
    return isSent(message) ? blocksOf({ key: entry.key, message }, this.#cache.calls).map(onlyWhole(message)) : []
  }

  #callAt(at: number, atUserTurn: boolean, rolls: boolean): ModelCall {
    const { cache, manager, window } = this.#setting
    const prices = this.#moment?.prices
    const call: ModelCall = {
      model: this.#moment?.model ?? '',
      prices: {
        input: prices?.input ?? 0,
        cacheRead: prices?.cacheRead ?? 0,
        cacheWrite: prices?.cacheWrite ?? 0,
      },
      contextWindow: window,
      cacheTtlMs: cache.lifetimeMs,
      nowMs: at,
      systemTokens: Math.ceil(this.#system.units / 4),
      onlyAtUserTurn: manager.onlyAtUserTurn,
      atUserTurn,
      rolls,
      shortens: true,
    }
    if (cache.lookback !== undefined) call.lookbackBlocks = cache.lookback
    return call
  }
}

function withHeader(content: ContentBlock[], header: string): ContentBlock[] {
  const first = content.findIndex((block) => block.type === 'text')
  return content.map((block, index) => (index === first ? { ...block, text: `${header}\n${block.text}` } : block))
}

/** Turns an edit into a replacement in Pi's session, as the extension does. */
function edited(edit: Edit, message: Message): Message {
  const content = Array.isArray(message.content) ? message.content : []
  if (edit.kind === 'result') {
    if (edit.text === undefined) return message
    return {
      ...message,
      content: [{ type: 'text', text: edit.text }, ...content.filter((block) => block.type !== 'text')],
    }
  }
  if (edit.kind === 'gone') return { ...message, left: true }
  if (typeof message.content === 'string') return { ...message, content: shortened(message.content, edit.texts) }
  let position = -1
  const named = content.map((block) => {
    if (block.type !== 'toolCall') return block
    position += 1
    const call = edit.calls.find((one) => one.position === position && one.callId === block.id)
    return call === undefined ? block : { ...block, arguments: call.args as Record<string, unknown> }
  })
  return { ...message, content: shortened(named, edit.texts) }
}

/** Whether an edit has left a message out. */
function hasLeft(message: Message): boolean {
  return message['left'] === true
}

/** What has become a reference no longer shows its file. */
function onlyWhole(message: Message): (block: Block) => Block {
  const reference = message.role === 'toolResult' && textOf(message).startsWith(REFERENCE)
  return (block) => {
    if (!reference) return block
    const { path: _, ...rest } = block
    return rest
  }
}
