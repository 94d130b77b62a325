/**
 * Tells conversations apart: by the host's own IDs, and within them by what the messages begin with. Requests on the side
 * (titles, summaries, questions) take the form of the conversation that they begin like and leave it as it is.
 */
import { randomUUID } from 'node:crypto'
import { sessionOf } from '../host-tools.ts'
import { Conversation, sentenceOf } from './conversation.ts'
import type { ConversationOptions, Form } from './conversation.ts'
import type { Forms, Remembered } from './forms.ts'
import type { Sender } from './identity.ts'
import { chainOf, commonLength } from './prefix.ts'
import { folderOf } from './request.ts'
import type { ModelRequest } from './request.ts'

/** What goes out for a request, and the conversation that it belongs to. */
export interface Placed {
  /** Undefined: the host's own messages, unchanged. */
  form: Form | undefined
  /** Undefined for a request on the side that begins like no conversation. */
  conversation: Conversation | undefined
  /** The conversation is left as it is. */
  isAside: boolean
}

/** Conversations that are open at a time. The longest unused ones are closed; they open again with their next request. */
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

  constructor(options: ConversationOptions, forms: Forms, cwd?: string) {
    this.#options = options
    this.#forms = forms
    this.#cwd = cwd
  }

  /** All conversations, the latest used last. */
  get all(): Conversation[] {
    return [...this.#groups.values()].flat()
  }

  /** The form in which a request goes out. Never rejects. */
  async place(request: ModelRequest, sender: Sender): Promise<Placed> {
    const key = keyOf(request, sender)
    const group = this.#groups.get(key) ?? []
    const { found, common } = this.#closest(key, group, request)
    if (found === undefined || common < found.raw.length) {
      const branched = this.#isBranch(key, request.messages, common)
      if (found !== undefined && !branched) {
        this.#remember(key, request.messages)
        return { form: found.aside(request.messages), conversation: found, isAside: true }
      }
    }
    const isSmall = found === undefined && !request.hasTools
    if (isSmall) return { form: undefined, conversation: undefined, isAside: true }
    const conversation = this.#goesOn(found, common, sender) ? (found as Conversation) : this.#begin(key, request, sender, group, found)
    this.#use(key, conversation)
    const form = await conversation.next(request)
    this.#note(key, conversation)
    return { form, conversation, isAside: false }
  }

  /** Returns whether anything in the conversations of a sender has been edited, in this process or before. */
  wasEdited(request: ModelRequest, sender: Sender): boolean {
    return this.#forms.of(keyOf(request, sender)).some(({ form }) => form.wasEdited)
  }

  /** Closes all sessions. */
  async close(): Promise<void> {
    // Those of an earlier process are known only to the ones that go on from them.
    const all = new Set(this.all.flatMap((one) => (one.before === undefined ? [one] : [one, one.before])))
    await Promise.all([...all].map((one) => one.close()))
  }

  /**
   * Returns whether a request goes on with a conversation in its place. Somebody may have gone back a few messages; if
   * the host has replaced most of it, a new conversation begins, and so it does where nothing but the beginning names a
   * session.
   */
  #goesOn(found: Conversation | undefined, common: number, { session }: Sender): boolean {
    if (found === undefined) return false
    const { length } = found.raw
    return common === length || (session !== undefined && common * 2 >= length)
  }

  /** Returns whether a branch of which one request is known already goes on here. */
  #isBranch(key: string, messages: readonly object[], common: number): boolean {
    const branches = this.#branches.get(key) ?? []
    const index = branches.findIndex((branch) => branch.length > common && branch.length < messages.length && commonLength(branch, messages) === branch.length)
    if (index < 0) return false
    branches.splice(index, 1)
    return true
  }

  #remember(key: string, messages: readonly object[]): void {
    const branches = (this.#branches.get(key) ?? []).filter((branch) => commonLength(branch, messages) < branch.length)
    this.#branches.set(key, [...branches.slice(-7), messages])
  }

  /**
   * The conversation that has most in common with a request, and how much. None if one of an earlier process has more: hosts
   * without IDs begin all of theirs with the same messages.
   */
  #closest(key: string, group: readonly Conversation[], request: ModelRequest): { found: Conversation | undefined; common: number } {
    const closest = longest(group, request.messages)
    if (closest.found === undefined || closest.common === closest.found.raw.length) return closest
    const known = this.#earlierOnes(key, group)
    const { stored, common } = storedFor(known, request, false)
    return stored !== undefined && common > closest.common ? { found: undefined, common: 0 } : closest
  }

  /** What is known of the conversations of earlier processes. */
  #earlierOnes(key: string, group: readonly Conversation[]): Remembered[] {
    return this.#forms.of(key).filter(({ id }) => !group.some((one) => one.id === id))
  }

  /** Notes what is about to go out. */
  #note(key: string, conversation: Conversation): void {
    const { id, cwd, before, form } = conversation
    try {
      this.#forms.note(key, { id, cwd, before: before?.id }, form)
    } catch (error) {
      this.#options.onTrouble('forms', `the form of a request could not be noted, so a later gateway may change it: ${sentenceOf(error)}`)
    }
  }

  /** A conversation that this process does not know: one of an earlier process, or a new one. */
  #begin(key: string, request: ModelRequest, sender: Sender, group: readonly Conversation[], alike: Conversation | undefined): Conversation {
    const known = this.#earlierOnes(key, group)
    const isNamed = sender.session !== undefined
    const { stored, common } = storedFor(known, request, isNamed && group.length === 0)
    const latest = stored === undefined ? (group.at(-1) ?? (isNamed ? this.#earlier(known.at(-1), request.api) : undefined)) : undefined
    const base = sender.session ?? sessionOf(sender.host, randomUUID())
    const taken = new Set([...group.map(({ id }) => id), ...this.#forms.of(key).map(({ id }) => id)])
    let id = stored?.id ?? base
    for (let number = 2; stored === undefined && taken.has(id); number += 1) id = `${base}~${number}`
    const parent = sender.parent === undefined ? undefined : this.#groups.get(`${sender.parent} ${request.api}`)?.at(-1)
    const cwd = stored?.cwd ?? folderOf(request) ?? this.#cwd ?? process.cwd()
    const earlier = stored?.before === undefined || parent !== undefined ? latest : new Conversation({ id: stored.before, api: request.api, cwd }, this.#options)
    const conversation = new Conversation({ id, api: request.api, cwd, before: earlier ?? parent, continues: earlier !== undefined && isNamed }, this.#options)
    // What the model has thought behind an edit may have come along.
    if (alike?.wasEdited === true || (isNamed && this.wasEdited(request, sender))) conversation.markEdited()
    if (stored !== undefined && common > 0) conversation.takeOver(request.messages.slice(0, common), stored.form)
    return conversation
  }

  /** A conversation of an earlier process, whose session can still be asked. */
  #earlier(tip: Remembered | undefined, api: ModelRequest['api']): Conversation | undefined {
    return tip === undefined ? undefined : new Conversation({ id: tip.id, api, cwd: tip.cwd }, this.#options)
  }

  #use(key: string, conversation: Conversation): void {
    const group = (this.#groups.get(key) ?? []).filter((one) => one !== conversation)
    this.#groups.delete(key)
    this.#groups.set(key, [...group, conversation])
    const open = this.all.filter((one) => one.isOpen && one !== conversation)
    for (const one of open.slice(0, Math.max(0, open.length - MOST_OPEN))) this.#forget(one)
  }

  #forget(conversation: Conversation): void {
    for (const [key, group] of this.#groups) {
      const rest = group.filter((one) => one !== conversation)
      if (rest.length === group.length) continue
      if (rest.length === 0) this.#groups.delete(key)
      else this.#groups.set(key, rest)
    }
    conversation.close().catch((error: unknown) => this.#options.onTrouble('close', `a session could not be closed: ${String(error)}`))
  }
}

/** What the conversations of a sender have in common. */
function keyOf({ api }: ModelRequest, { session, host }: Sender): string {
  return `${session ?? `${host}:`} ${api}`
}

/** The conversation that has most in common with some messages, and how much. The whole of one counts more than a part. */
function longest(group: readonly Conversation[], messages: readonly object[]): { found: Conversation | undefined; common: number } {
  let best: { found: Conversation | undefined; common: number; isWhole: boolean } = { found: undefined, common: 0, isWhole: false }
  for (const one of group.toReversed()) {
    const common = commonLength(one.raw, messages)
    const isWhole = common === one.raw.length
    if (common > 0 && (isWhole ? !best.isWhole || common > best.common : !best.isWhole && common > best.common)) best = { found: one, common, isWhole }
  }
  return best
}

/**
 * The stored conversation that some messages continue, and how many of them it had. If none does and `byName` is set, the
 * latest one of the same name, with what is still the same: somebody may have gone back, or its first messages say another
 * date now. If most of it is missing, the host has compacted it.
 */
function storedFor(known: readonly Remembered[], { messages }: ModelRequest, byName: boolean): { stored: Remembered | undefined; common: number } {
  if (known.length === 0) return { stored: undefined, common: 0 }
  const chain = chainOf(messages)
  const found = known.map((stored) => ({ stored, count: stored.form.chain.length - 1, common: commonLinks(stored.form.chain, chain) }))
  const longest = found.filter(({ count, common }) => common === count).toSorted((one, other) => other.count - one.count)[0]
  if (longest !== undefined) return longest
  const latest = found.toSorted((one, other) => one.common - other.common).at(-1)
  const isIt = byName && latest !== undefined && messages.length > 2 && messages.length * 2 >= latest.count
  return isIt ? latest : { stored: undefined, common: 0 }
}

/** How many messages two chains have in common. */
function commonLinks(one: readonly string[], other: readonly string[]): number {
  let most = Math.min(one.length, other.length) - 1
  while (most > 0 && one[most] !== other[most]) most -= 1
  return most
}
