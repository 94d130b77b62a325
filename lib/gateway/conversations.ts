/**
 * Tells conversations apart: by the host's own IDs, and within them by what the messages begin with. Requests on the side
 * (titles, summaries, questions) take the form of the conversation that they begin like and leave it as it is.
 */
import { randomUUID } from 'node:crypto'
import type { StoreState } from '../../index.js'
import { sentenceOf, sessionOf, unsentSentence } from '../core/index.ts'
import { NO_BEGINNING } from './beginning.ts'
import { Conversation } from './conversation.ts'
import type { ConversationOptions, SentForm } from './conversation.ts'
import type { BranchMark, Remembered } from './form-files.ts'
import { inMemory } from './forms.ts'
import type { Forms } from './forms.ts'
import { resultsIn } from './hidden.ts'
import type { Sender } from './identity.ts'
import { commonLength, linkOf } from './prefix.ts'
import { appliedItems, isWhole } from '../projection/index.ts'
import { folderOf, share } from './request.ts'
import type { ModelRequest } from './request.ts'
import { marksOf } from './said.ts'
import { shapeOf } from './shape.ts'
import { askedIn, asideOf, branchIn, choose, forkedFrom, isMost, isNewChat, nearIn, opened } from './stored.ts'
import type { AskedRequest, Begin, Begun, FormChoice, Near } from './stored.ts'
import { TracesSoFar } from './traces.ts'

/** The form in which a request goes out, and the conversation that it belongs to. */
export interface Placed {
  /** Undefined: the host's own messages, unchanged. */
  form: SentForm | undefined
  /** Undefined for a request on the side that begins like no conversation. */
  conversation: Conversation | undefined
  /** The conversation is left as it is. */
  isAside: boolean
}

/** A look at the disk, and the conversation that it is for. */
export interface ConversationLook {
  conversation: Conversation
  done: Promise<unknown>
}

/** Conversations that are known at a time. The gateway closes the longest unused ones; their next requests continue from their stored forms. */
const MOST_OPEN = 64

/** All conversations of a gateway. */
export class Conversations {
  readonly #options: ConversationOptions
  readonly #forms: Forms
  readonly #cwd: string | undefined
  /** By what their sender names, the latest used last. */
  readonly #groups = new Map<string, Conversation[]>()
  /** Conversations with which another process has gone on. They continue from the form that it sent. */
  readonly #foreign = new WeakSet<Conversation>()
  /** The traces of their messages, as they were read last. */
  readonly #traces = new WeakMap<Conversation, TracesSoFar>()
  /** Conversations with requests that are on their way out, and how many. */
  readonly #placing = new Map<Conversation, number>()
  /** Conversations of earlier processes that were asked for something, by ID. */
  readonly #earlier = new Map<string, Conversation>()
  /** Those of them that had requests on the side, and none that continues them yet, with their keys. */
  readonly #beside = new Map<Conversation, string>()
  /** The store's last state when a session on it was closed. */
  #stored: StoreState | undefined

  constructor(options: ConversationOptions, forms: Forms, cwd?: string) {
    this.#options = options
    this.#forms = forms
    this.#cwd = cwd
  }

  /** All conversations, the latest used last. */
  get all(): Conversation[] {
    return [...this.#groups.values()].flat()
  }

  /** The conversations whose models have been asked something, the latest last: all, and those of earlier processes that had requests on the side. */
  get asked(): Conversation[] {
    return [...this.#beside.keys(), ...this.all]
  }

  /** Has the trackers look at the disk for a request that is coming, of whom its headers name. */
  look(api: ModelRequest['api'], sender: Sender): ConversationLook | undefined {
    const conversation = this.#groups.get(keyOf({ api }, sender))?.at(-1)
    const done = conversation?.look()
    return conversation === undefined || done === undefined ? undefined : { conversation, done }
  }

  /** The form in which a request goes out. Never rejects. `look` was begun when it came. */
  async place(request: ModelRequest, sender: Sender, look?: ConversationLook): Promise<Placed> {
    const key = keyOf(request, sender)
    const { messages } = request
    const asked = askedIn(request, sender)
    const going = this.#goingOn(key, messages)
    const known = going === undefined ? this.#known(key, asked) : [going]
    const { near, isEdit = false, left } = going === undefined ? choose(known, asked) : { near: going }
    if (near?.live !== undefined && left === undefined && !this.#foreign.has(near.live)) share(request, near.live.raw, near.common)
    const isContinued = isEdit || left !== undefined || near?.isWhole === true
    const asBranch = isContinued ? undefined : this.#branchOf(key, known, asked, near?.common ?? 0)
    const isBranch = asBranch !== undefined
    const isBegun = near === undefined || (!isContinued && !isBranch && isNewChat(near, asked))
    if (!isContinued && !isBranch && !isBegun) {
      this.#noteBranch(key, near, asked)
      const conversation = this.#of(near, asked)
      if (near.live === undefined) this.#beside.set(conversation, key)
      const form = asideOf(near, asked)
      conversation.beside = { results: () => resultsIn(messages, shapeOf(request.api), near.common), sent: () => appliedItems(messages, form) }
      return { form, conversation, isAside: true }
    }
    if (isBegun && !request.hasTools) return { form: undefined, conversation: undefined, isAside: true }
    const goesOn = !isBegun && left === undefined && (isContinued || (asked.isNamed && isMost(near)))
    const leaves = goesOn && !isEdit && !near.isWhole
    const conversation = (goesOn ? this.#caughtUp(near, asked) : undefined) ?? this.#begin(key, sender, asked, { known, near, left, goesOn })
    const common = goesOn && conversation === near.live ? near.common : undefined
    this.#use(key, conversation)
    const beside = {
      ...(common !== undefined && { common }),
      // A chain that was needed to find the conversation is not made twice.
      ...((common === undefined || going === undefined) && { chain: asked.chain() }),
      ...(look?.conversation === conversation && { looked: look.done }),
      ...(isBranch && { asBranch }),
    }
    this.#placing.set(conversation, (this.#placing.get(conversation) ?? 0) + 1)
    try {
      const form = await conversation.next(request, beside)
      this.#note(key, conversation, leaves)
      return { form, conversation, isAside: false }
    } finally {
      const left = (this.#placing.get(conversation) as number) - 1
      if (left === 0) this.#placing.delete(conversation)
      else this.#placing.set(conversation, left)
    }
  }

  /** True if anything in the conversations of a sender has been edited, in this process or before. */
  wasEdited(request: ModelRequest, sender: Sender): boolean {
    return this.#formsOf(keyOf(request, sender)).some(({ form }) => form.wasEdited)
  }

  /** Closes all sessions, and says so if the database does not have all that they wrote. */
  async close(): Promise<void> {
    // Only the conversations that continue those of an earlier process know them.
    const all = new Set([...this.all.flatMap((one) => (one.before === undefined ? [one] : [one, one.before])), ...this.#earlier.values()])
    // A session whose store has gone can't be closed; the others still are.
    for (const closed of await Promise.allSettled([...all].map((one) => one.close()))) {
      if (closed.status === 'fulfilled') this.#closed(closed.value)
      else this.#options.onTrouble('closing', `a session could not be closed: ${sentenceOf(closed.reason)}`)
    }
    const unsent = unsentSentence(this.#stored)
    if (unsent !== undefined) this.#options.onTrouble('unsent', unsent)
  }

  /** The longest conversation of this process that a request continues, if no other process has gone on with it. */
  #goingOn(key: string, messages: readonly object[]): Near | undefined {
    let found: Conversation | undefined
    for (const one of this.#groups.get(key) ?? []) {
      const { length } = one.raw
      if (length > 0 && length >= (found?.raw.length ?? 0) && length <= messages.length && commonLength(one.raw, messages) === length) found = one
    }
    if (found === undefined || this.#foreign.has(found) || this.#forms.isForeign(key, found.id)) return undefined
    const live = found
    return {
      // Mostly nothing asks for it.
      get stored() {
        return remembered(live)
      },
      live,
      common: live.raw.length,
      isWhole: true,
    }
  }

  /** The conversations of a key, of this process and of others, the latest used last. */
  #known(key: string, { chain }: AskedRequest): Near[] {
    const stored = this.#formsOf(key)
    const group = this.#groups.get(key) ?? []
    const unstored = group.filter(({ id, raw }) => raw.length > 0 && !stored.some((one) => one.id === id)).map(remembered)
    return [...unstored, ...stored].toSorted((one, other) => one.form.atMs - other.form.atMs).map((one) => nearIn(one, group, chain()))
  }

  /** The latest conversations of all keys. */
  #latest({ chain }: AskedRequest): Near[] {
    const all = this.all
    return this.#forms.latest().map((one) => nearIn(one, all, chain()))
  }

  /** The stored conversations of a key. Notes first with which of them another process has gone on. */
  #formsOf(key: string): readonly Remembered[] {
    for (const one of this.#groups.get(key) ?? []) if (this.#forms.isForeign(key, one.id)) this.#foreign.add(one)
    return this.#forms.of(key)
  }

  /** Returns the known conversations of other processes. */
  #earlierOnes(key: string): Remembered[] {
    const group = this.#groups.get(key) ?? []
    return this.#formsOf(key).filter(({ id }) => !group.some((one) => one.id === id))
  }

  /**
   * Conversations of other processes that a call of our tools may mean: those in the same folder, the latest first, if the host
   * names no sessions. Where it does, none: they are known by name.
   */
  othersLike(conversation: Conversation): Conversation[] {
    const key = this.#beside.get(conversation) ?? [...this.#groups].find(([, group]) => group.includes(conversation))?.[0]
    if (key === undefined || !NAMELESS.test(key)) return []
    return this.#earlierOnes(key)
      .flatMap(({ id, cwd }) => (cwd === conversation.cwd && id !== conversation.id ? [this.#earlierOf({ id, cwd }, conversation.api)] : []))
      .toReversed()
  }

  /** The length of the question on the side that a request continues: the first one of a branch. Undefined if it continues none. */
  #branchOf(key: string, known: readonly Near[], asked: AskedRequest, common: number): number | undefined {
    for (const { stored } of known) {
      const branch = branchIn(stored, asked, common)
      if (branch === undefined) continue
      this.#noteBranches(
        key,
        stored,
        stored.branches.filter((one) => one !== branch),
      )
      return branch[0]
    }
    return undefined
  }

  #noteBranch(key: string, { stored }: Near, { chain }: AskedRequest): void {
    const own = chain()
    // One that this request continues is known by it.
    const others = stored.branches.filter(([length, link]) => own[length] === undefined || linkOf(own[length]) !== link)
    this.#noteBranches(key, stored, [...others, [own.length - 1, linkOf(own.at(-1) as string)]])
  }

  #noteBranches(key: string, { id }: Remembered, branches: readonly BranchMark[]): void {
    this.#noted(() => this.#forms.noteBranches(key, id, branches))
  }

  /** Notes what is about to go out. `leaves`: its user went back. */
  #note(key: string, conversation: Conversation, leaves: boolean): void {
    const { id, cwd, before, form, api, raw } = conversation
    const isNamed = !NAMELESS.test(key)
    const traces = this.#traces.get(conversation) ?? new TracesSoFar(api, isNamed)
    this.#traces.set(conversation, traces)
    const said = marksOf(conversation.said)
    this.#noted(() => this.#forms.note(key, { id, cwd, before: before?.id }, { ...form, said, traces: traces.of(raw) }, leaves))
  }

  #noted(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#options.onTrouble('forms', `the form of a request could not be noted, so a later gateway may change it: ${sentenceOf(error)}`)
    }
  }

  /** The conversation of this process, which continues from the form of another one if that has gone on with it. */
  #caughtUp({ stored: { form }, live, common }: Near, { request, chain }: AskedRequest): Conversation | undefined {
    if (live === undefined || !this.#foreign.has(live)) return live
    this.#foreign.delete(live)
    const beginning = opened(form, chain(), common, request)
    if (beginning !== undefined || common === 0) live.takeOver(request.messages.slice(0, common), beginning ?? NO_BEGINNING, form)
    return live
  }

  /** The conversation itself, or one of an earlier process, whose session can still be asked. */
  #of({ stored: { id, cwd, before }, live }: Near, { request: { api }, continues }: AskedRequest): Conversation {
    return live ?? this.#earlierOf({ id, cwd, before: continues ? before : undefined }, api)
  }

  /** A conversation that is new to this process. The messages that it shares with another one are sent as they were there. */
  #begin(key: string, sender: Sender, asked: AskedRequest, { known, near, left, goesOn }: Begin): Conversation {
    const { request, isNamed } = asked
    const { api } = request
    const stored = goesOn ? near?.stored : undefined
    const fork = near === undefined && isNamed ? forkedFrom(this.#latest(asked), asked) : undefined
    const beginning = this.#beginningFor(asked, near ?? fork, left, goesOn)
    const parent = this.#parentOf(sender, api)
    const folder = folderOf(request) ?? this.#cwd
    const cwd = stored?.cwd ?? folder ?? process.cwd()
    const last = isNamed ? known.at(-1) : undefined
    const latest = last === undefined ? this.#groups.get(key)?.at(-1) : this.#of(last, asked)
    const named = stored?.before === undefined ? undefined : this.#earlierOf({ id: stored.before, cwd }, api)
    const earlier = stored === undefined ? (beginning?.of ?? latest) : parent === undefined ? named : undefined
    const continues = beginning?.of !== undefined || (earlier !== undefined && isNamed)
    const id = stored?.id ?? this.#newId(key, known, sender.session ?? sessionOf(sender.host, randomUUID()))
    this.#leaveEarlier(id)
    // One that its host does not name has just got its name here.
    const isNew = stored === undefined && !isNamed
    const conversation = new Conversation({ id, api, cwd, folder, before: earlier ?? parent, continues, isNew }, this.#options)
    // The request may include reasoning that the model wrote after an edit.
    if (isNamed && known.some((one) => one.stored.form.wasEdited || one.live?.wasEdited === true)) conversation.markEdited()
    if (beginning !== undefined) conversation.takeOver(request.messages.slice(0, beginning.common), beginning, beginning.form)
    // The host has changed the very first message: nothing of the last request is left in this one.
    else if (stored !== undefined && near?.common === 0) conversation.takeOver([], NO_BEGINNING, stored.form)
    return conversation
  }

  /** Finds the form that was sent for the first messages of a conversation: its own, or what was edited in another one. */
  #beginningFor(asked: AskedRequest, near: Near | undefined, left: FormChoice['left'] | undefined, isOwn: boolean): Begun | undefined {
    if (near === undefined) return undefined
    const { form, common } = left ?? { form: near.stored.form, common: near.common }
    const sent = opened(form, asked.chain(), common, asked.request)
    if (sent === undefined) return undefined
    if (isOwn) return { ...sent, form, common, of: undefined }
    return isWhole(sent.items, sent.length) ? undefined : { ...sent, form, common, of: this.#of(near, asked) }
  }

  /** The latest conversation of the agent that has started the sender. */
  #parentOf({ parent }: Sender, api: ModelRequest['api']): Conversation | undefined {
    if (parent === undefined) return undefined
    const key = `${parent} ${api}`
    const stored = this.#groups.has(key) ? undefined : this.#forms.of(key).at(-1)
    return stored === undefined ? this.#groups.get(key)?.at(-1) : this.#earlierOf(stored, api)
  }

  /** An ID that no conversation of a key has: the name of its session, with a number for later ones. */
  #newId(key: string, known: readonly Near[], base: string): string {
    const taken = new Set([...(this.#groups.get(key) ?? []), ...known.map(({ stored }) => stored)].map(({ id }) => id))
    let id = base
    for (let number = 2; taken.has(id); number += 1) id = `${base}~${number}`
    return id
  }

  /** A conversation of another process, whose session can still be asked, and the one that it continues, if it does. */
  #earlierOf({ id, cwd, before }: Pick<Remembered, 'id' | 'cwd' | 'before'>, api: ModelRequest['api']): Conversation {
    const known = this.#earlier.get(id)
    if (known !== undefined) return known
    const continued = before === undefined ? undefined : this.#earlierOf({ id: before, cwd }, api)
    const one = new Conversation({ id, api, cwd, before: continued, continues: continued !== undefined }, this.#options)
    this.#earlier.set(id, one)
    for (const oldest of [...this.#earlier.keys()].slice(0, Math.max(0, this.#earlier.size - MOST_OPEN))) this.#leaveEarlier(oldest)
    return one
  }

  /** Lets go of a conversation of an earlier process, because others are asked or this process continues it. */
  #leaveEarlier(id: string): void {
    const one = this.#earlier.get(id)
    if (one === undefined) return
    this.#earlier.delete(id)
    this.#beside.delete(one)
    void this.#release(one)
  }

  #use(key: string, conversation: Conversation): void {
    const group = (this.#groups.get(key) ?? []).filter((one) => one !== conversation)
    this.#groups.delete(key)
    this.#groups.set(key, [...group, conversation])
    const others = this.all.filter((one) => one !== conversation && !this.#placing.has(one))
    for (const one of others.slice(0, Math.max(0, others.length - MOST_OPEN))) void this.#leave(one)
  }

  /** Leaves a conversation and drops the facts about it. Its next request continues from its stored form. */
  async #leave(conversation: Conversation): Promise<void> {
    for (const [key, group] of this.#groups) {
      const rest = group.filter((one) => one !== conversation)
      if (rest.length === group.length) continue
      if (rest.length > 0) this.#groups.set(key, rest)
      else this.#groups.delete(key)
    }
    await this.#release(conversation)
  }

  #closed(left: StoreState | undefined): void {
    this.#stored = left ?? this.#stored
  }

  #release(conversation: Conversation): Promise<void> {
    return conversation
      .release()
      .then((left) => this.#closed(left))
      .catch((error: unknown) => this.#options.onTrouble('close', `a session could not be closed: ${String(error)}`))
  }
}

/** Returns the key that the conversations of a sender have in common. */
function keyOf({ api }: Pick<ModelRequest, 'api'>, { session, host }: Sender): string {
  return `${session ?? `${host}:`} ${api}`
}

/** The keys of conversations whose host names no session. */
const NAMELESS = /^[\w-]+: /

/** A conversation of this process, as it is stored. */
function remembered({ id, cwd, form }: Conversation): Remembered {
  return { id, cwd, form: inMemory(form), left: [], branches: [] }
}
