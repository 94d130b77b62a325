/**
 * Tells conversations apart: by the host's own IDs, and within them by what the messages begin with. Requests on the side
 * (titles, summaries, questions) take the form of the conversation that they begin like and leave it as it is.
 */
import { randomUUID } from 'node:crypto'
import type { StoreState } from '../../index.js'
import { sentenceOf, sessionOf, unsentSentence } from '../core/index.ts'
import { NO_BEGINNING } from './beginning.ts'
import type { Beginning } from './beginning.ts'
import { Conversation } from './conversation.ts'
import type { ConversationOptions, SentForm } from './conversation.ts'
import type { Remembered, StoredForm } from './form-files.ts'
import { inMemory } from './forms.ts'
import type { Forms } from './forms.ts'
import type { Sender } from './identity.ts'
import { isEditOf } from './early.ts'
import { chainOf, commonLength } from './prefix.ts'
import { isWhole } from '../projection/index.ts'
import { folderOf, share } from './request.ts'
import type { ModelRequest } from './request.ts'
import { isWrittenAnew, marksOf, saidIn } from './said.ts'
import type { Said } from './said.ts'
import { commonLinks, isSame, opened, storedFor, storedForSaid } from './stored.ts'
import type { Near } from './stored.ts'

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
  /** Beginnings of branches: requests that are not the continuation of their conversation. The next request tells. */
  readonly #branches = new Map<string, (readonly object[])[]>()
  /** Each conversation as it was before its user went back in it. If that one continues as well, there are two. */
  readonly #left = new WeakMap<Conversation, StoredForm[]>()
  /** Conversations with requests that are on their way out, and how many. */
  readonly #placing = new Map<Conversation, number>()
  /** Conversations of earlier processes that were asked for something, by ID. */
  readonly #earlier = new Map<string, Conversation>()
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

  /** Has the trackers look at the disk for a request that is coming, of whom its headers name. */
  look(api: ModelRequest['api'], sender: Sender): ConversationLook | undefined {
    const conversation = this.#groups.get(keyOf({ api }, sender))?.at(-1)
    const done = conversation?.look()
    return conversation === undefined || done === undefined ? undefined : { conversation, done }
  }

  /** The form in which a request goes out. Never rejects. `look` was begun when it came. */
  async place(request: ModelRequest, sender: Sender, look?: ConversationLook): Promise<Placed> {
    const key = keyOf(request, sender)
    const chain = once(() => chainOf(request.messages))
    const said = once(() => saidIn(request))
    const closest = this.#edited(key, request, sender, { chain, said }) ?? this.#closest(key, request, chain, said)
    const { found, common, left, isEdit } = closest
    if (found !== undefined && left === undefined) share(request, found.raw, common)
    if (left === undefined && isEdit !== true && (found === undefined || common < found.raw.length)) {
      const branched = this.#isBranch(key, request.messages, common)
      if (found !== undefined && !branched) {
        this.#remember(key, request.messages)
        return { form: found.aside(request.messages), conversation: found, isAside: true }
      }
    }
    const isSmall = found === undefined && !request.hasTools
    if (isSmall) return { form: undefined, conversation: undefined, isAside: true }
    const goesOn = isEdit === true || (left === undefined && this.#goesOn(found, common, sender))
    const conversation = goesOn ? (found as Conversation) : this.#begin(key, request, sender, { chain: chain(), said }, closest)
    if (goesOn && isEdit !== true && common < conversation.raw.length) this.#noteLeft(conversation)
    this.#use(key, conversation)
    const known = { ...(goesOn ? { common } : { chain: chain() }), ...(look?.conversation === conversation ? { looked: look.done } : {}) }
    this.#placing.set(conversation, (this.#placing.get(conversation) ?? 0) + 1)
    try {
      const form = await conversation.next(request, known)
      this.#note(key, conversation)
      return { form, conversation, isAside: false }
    } finally {
      const left = (this.#placing.get(conversation) as number) - 1
      if (left === 0) this.#placing.delete(conversation)
      else this.#placing.set(conversation, left)
    }
  }

  /** True if anything in the conversations of a sender has been edited, in this process or before. */
  wasEdited(request: ModelRequest, sender: Sender): boolean {
    return this.#forms.of(keyOf(request, sender)).some(({ form }) => form.wasEdited)
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

  /**
   * True if a request continues a conversation in its place. The user may have gone back a few messages; if
   * the host has replaced most of it, a new conversation begins. The same applies where only the beginning names a
   * session.
   */
  #goesOn(found: Conversation | undefined, common: number, { session }: Sender): boolean {
    if (found === undefined) return false
    const { length } = found.raw
    return common === length || (session !== undefined && common * 2 >= length)
  }

  /** True if a request continues a branch of which one request is known already. */
  #isBranch(key: string, messages: readonly object[], common: number): boolean {
    const branches = this.#branches.get(key) ?? []
    const index = branches.findIndex((branch) => branch.length > common && branch.length < messages.length && commonLength(branch, messages) === branch.length)
    if (index < 0) return false
    branches.splice(index, 1)
    return true
  }

  #noteLeft(conversation: Conversation): void {
    this.#left.set(conversation, [...(this.#left.get(conversation) ?? []).slice(-7), inMemory(conversation.form)])
  }

  #remember(key: string, messages: readonly object[]): void {
    const branches = (this.#branches.get(key) ?? []).filter((branch) => commonLength(branch, messages) < branch.length)
    this.#branches.set(key, [...branches.slice(-7), messages])
  }

  /**
   * The conversation that has most in common with a request, and how much. None if one of an earlier process has more: hosts
   * without IDs begin all of theirs with the same messages.
   */
  #closest(key: string, request: ModelRequest, chain: () => string[], said: () => Said): Closest {
    let closest = longest(this.#groups.get(key) ?? [], request.messages)
    if (closest.found !== undefined && this.#catchUp(key, closest.found, request, chain)) closest = longest(this.#groups.get(key) ?? [], request.messages)
    if (closest.found === undefined || closest.common === closest.found.raw.length) return closest
    for (const found of this.#groups.get(key) ?? []) {
      for (const left of this.#left.get(found) ?? []) {
        const common = left.links.length - 1
        if (common > closest.common && commonLinks(left.links, chain()) === common) closest = { found, common, left }
      }
    }
    if (closest.left !== undefined) return closest
    const near = nearIn(this.#earlierOnes(key), key, chain(), said)
    return near?.isAnew === true || (near?.isWhole === true && near.common > closest.common) ? { found: undefined, common: 0 } : closest
  }

  /**
   * The conversation that a request continues although its host changed something early in it. Another process decides the same
   * from the files on disk.
   */
  #edited(key: string, request: ModelRequest, { session }: Sender, { chain, said }: { chain: () => string[]; said: () => Said }): Closest | undefined {
    const { api, messages, hasTools } = request
    const group = this.#groups.get(key) ?? []
    if (!hasTools) return undefined
    const near = group.toReversed().map((found) => ({ found, common: commonLength(found.raw, messages) }))
    if (near.some(({ found, common }) => common === found.raw.length)) return undefined
    if (session === undefined && near.length > 0 && storedFor(this.#earlierOnes(key), chain())?.isWhole === true) return undefined
    const edited = near.find(({ found, common }) =>
      session === undefined
        ? isWrittenAnew({ api, messages: found.raw as object[], said: found.said }, request, said())
        : isEditOf(found.raw, messages, common),
    )
    return edited === undefined || this.#forms.isForeign(key, edited.found.id) ? undefined : { ...edited, isEdit: true }
  }

  /** Another gateway may have continued a conversation. If so, this one continues from the form that the other one sent. */
  #catchUp(key: string, conversation: Conversation, request: ModelRequest, chain: () => string[]): boolean {
    if (!this.#forms.isForeign(key, conversation.id)) return false
    const form = this.#forms.of(key).find(({ id }) => id === conversation.id)?.form
    const common = form === undefined ? 0 : commonLinks(form.links, chain())
    const beginning = form === undefined ? undefined : opened(form, chain(), common, request)
    if (form === undefined || beginning === undefined) return false
    conversation.takeOver(request.messages.slice(0, common), beginning, form)
    return true
  }

  /** Returns the known conversations of other processes. */
  #earlierOnes(key: string): Remembered[] {
    const group = this.#groups.get(key) ?? []
    return this.#forms.of(key).filter(({ id }) => !group.some((one) => one.id === id))
  }

  /**
   * Conversations of other processes that a call of our tools may mean: those in the same folder, the latest first, if the host
   * names no sessions. Where it does, none: they are known by name.
   */
  othersLike(conversation: Conversation): Conversation[] {
    const key = [...this.#groups].find(([, group]) => group.includes(conversation))?.[0]
    if (key === undefined || !NAMELESS.test(key)) return []
    return this.#earlierOnes(key)
      .flatMap((one) => (one.cwd === conversation.cwd ? [this.#earlierOf(one, conversation.api)] : []))
      .toReversed()
  }

  /** Notes what is about to go out. */
  #note(key: string, conversation: Conversation): void {
    const { id, cwd, before, form } = conversation
    try {
      const said = NAMELESS.test(key) ? { said: marksOf(conversation.said) } : {}
      this.#forms.note(key, { id, cwd, before: before?.id }, { ...form, ...said })
    } catch (error) {
      this.#options.onTrouble('forms', `the form of a request could not be noted, so a later gateway may change it: ${sentenceOf(error)}`)
    }
  }

  /**
   * A conversation that this process does not know: one of an earlier process, or a new one. The messages that it shares
   * with another one are sent as they were there.
   */
  #begin(key: string, request: ModelRequest, sender: Sender, { chain, said }: { chain: readonly string[]; said: () => Said }, closest: Closest): Conversation {
    const { api } = request
    const group = this.#groups.get(key) ?? []
    const known = this.#earlierOnes(key)
    const isNamed = sender.session !== undefined
    const near = nearIn(known, key, chain, said)
    const stored =
      near !== undefined && (near.isWhole || near.isAnew === true || (isNamed && group.length === 0 && isSame(near, request))) ? near.stored : undefined
    const beginning = this.#beginningFor(chain, request, closest, near, stored !== undefined)
    const parent = sender.parent === undefined ? undefined : this.#groups.get(`${sender.parent} ${api}`)?.at(-1)
    const cwd = stored?.cwd ?? folderOf(request) ?? this.#cwd ?? process.cwd()
    const latest = group.at(-1) ?? (isNamed && known.length > 0 ? this.#earlierOf(known.at(-1) as Remembered, api) : undefined)
    const named = stored?.before === undefined ? undefined : this.#earlierOf({ id: stored.before, cwd }, api)
    const earlier = stored === undefined ? (beginning?.of ?? latest) : parent === undefined ? named : undefined
    const continues = beginning?.of !== undefined || (earlier !== undefined && isNamed)
    const id = stored?.id ?? this.#newId(key, sender.session ?? sessionOf(sender.host, randomUUID()))
    // One that its host does not name has just got its name here.
    const isNew = stored === undefined && !isNamed
    const conversation = new Conversation({ id, api, cwd, before: earlier ?? parent, continues, isNew }, this.#options)
    // The request may include reasoning that the model wrote after an edit.
    if (isNamed && (closest.found?.wasEdited === true || this.wasEdited(request, sender))) conversation.markEdited()
    if (beginning !== undefined) conversation.takeOver(request.messages.slice(0, beginning.common), beginning, beginning.form)
    // The host has changed the very first message: nothing of the last request is left in this one.
    else if (stored !== undefined && near?.common === 0) conversation.takeOver([], NO_BEGINNING, stored.form)
    return conversation
  }

  /** Finds the form that was sent for the first messages of a conversation: its own, or what was edited in another one. */
  #beginningFor(
    chain: readonly string[],
    request: ModelRequest,
    { found, common: own, left }: Closest,
    near: Near | undefined,
    isStored: boolean,
  ): Begun | undefined {
    const isOwn = found !== undefined && !isStored && own >= (near?.common ?? 0)
    const common = isOwn ? own : (near?.common ?? 0)
    const form = isOwn ? (left ?? inMemory(found.form)) : near?.stored.form
    const sent = form === undefined ? undefined : opened(form, chain, common, request)
    if (form === undefined || sent === undefined) return undefined
    if (isStored) return { ...sent, form, common, of: undefined }
    return isWhole(sent.items, sent.length) ? undefined : { ...sent, form, common, of: isOwn ? found : this.#earlierOf((near as Near).stored, request.api) }
  }

  /** An ID that no conversation of a key has: the name of its session, with a number for later ones. */
  #newId(key: string, base: string): string {
    const taken = new Set([...(this.#groups.get(key) ?? []), ...this.#forms.of(key)].map(({ id }) => id))
    let id = base
    for (let number = 2; taken.has(id); number += 1) id = `${base}~${number}`
    return id
  }

  /** A conversation of another process, whose session can still be asked. */
  #earlierOf({ id, cwd }: { id: string; cwd: string }, api: ModelRequest['api']): Conversation {
    let one = this.#earlier.get(id)
    if (one === undefined) this.#earlier.set(id, (one = new Conversation({ id, api, cwd }, this.#options)))
    for (const [oldest, other] of [...this.#earlier].slice(0, Math.max(0, this.#earlier.size - MOST_OPEN))) {
      this.#earlier.delete(oldest)
      void this.#release(other)
    }
    return one
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
      else {
        this.#groups.delete(key)
        this.#branches.delete(key)
      }
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

/** The stored conversation that is nearest to a request. */
function nearIn(known: readonly Remembered[], key: string, chain: readonly string[], said: () => Said): Near | undefined {
  return NAMELESS.test(key) ? storedForSaid(known, chain, said) : storedFor(known, chain)
}

/** A conversation of this process, and how many of a request's messages it had. */
interface Closest {
  found: Conversation | undefined
  common: number
  /** The form of these messages, if the conversation has gone back since. */
  left?: StoredForm
  /** The request is this conversation, in which the host has changed something early. */
  isEdit?: boolean
}

/** The form that was sent for the first messages of a conversation. */
interface Begun extends Beginning {
  form: StoredForm
  /** The number of messages that the request and the form have in common. */
  common: number
  /** The other conversation that it continues. */
  of: Conversation | undefined
}

/** The conversation that has most in common with some messages, and how much. The whole of one counts more than a part. */
function longest(group: readonly Conversation[], messages: readonly object[]): Closest {
  let best: { found: Conversation | undefined; common: number; isWhole: boolean } = { found: undefined, common: 0, isWhole: false }
  for (const one of group.toReversed()) {
    const common = commonLength(one.raw, messages)
    const isWhole = common === one.raw.length
    if (common > 0 && (isWhole ? !best.isWhole || common > best.common : !best.isWhole && common > best.common)) best = { found: one, common, isWhole }
  }
  return best
}

/** Works once, at its first use. */
function once<T extends object>(work: () => T): () => T {
  let done: T | undefined
  return () => (done ??= work())
}
