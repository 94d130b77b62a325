/** Finds the conversation that a request continues, among those that are known: of this process and of others. */
import { appliedItems } from '../projection/index.ts'
import { asTheyAre, withRest } from './beginning.ts'
import type { Beginning } from './beginning.ts'
import type { Conversation, SentForm } from './conversation.ts'
import { isEditOf, isGoneOn } from './early.ts'
import type { BranchMark, Remembered, StoredForm } from './form-files.ts'
import { isPaired } from './pairs.ts'
import type { Sender } from './identity.ts'
import { chainOf, linkOf } from './prefix.ts'
import { isAnswer, isUsers } from './request.ts'
import type { ModelRequest } from './request.ts'
import { lengthAnew, lengthsOf, saidIn } from './said.ts'
import type { Said } from './said.ts'
import type { Unsealed } from './seal.ts'
import { shapeOf } from './shape.ts'
import { hasOutputs, TracesSoFar } from './traces.ts'
import type { Traces } from './traces.ts'

/** A conversation, and how many of a request's messages it had. */
export interface Near {
  stored: Remembered
  /** The conversation itself; undefined if this process does not have it. */
  live: Conversation | undefined
  common: number
  /** All that it had. */
  isWhole: boolean
}

/** The conversation that a request belongs to. */
export interface FormChoice {
  /** Undefined if it begins like none. */
  near: Near | undefined
  /** The request is this conversation, in which the host has changed something early. */
  isEdit?: true
  /** The form of the first `common` messages, if the conversation has gone back since. */
  left?: { form: StoredForm; common: number }
}

/** The conversation that begins: one of an earlier process that continues, or one that has its first messages from another. */
export interface Begin extends Pick<FormChoice, 'near'> {
  known: readonly Near[]
  left: FormChoice['left'] | undefined
  goesOn: boolean
}

/** The form that was sent for the first messages of a conversation. */
export interface Begun extends Beginning {
  form: StoredForm
  /** The number of messages that the request and the form have in common. */
  common: number
  /** The other conversation that it continues. */
  of: Conversation | undefined
}

/** A request, with what is compared of it; each is read once it is needed. */
export interface AskedRequest {
  request: ModelRequest
  /** Its host names the session. */
  isNamed: boolean
  /** Each conversation of its sender continues the one before it: the host names the session, and no other agent has started it. */
  continues: boolean
  chain: () => readonly string[]
  said: () => Said
  traces: () => Traces
}

/**
 * Chooses one of the conversations of a sender, given with the latest used last. All that it looks at is in the stored forms, so that
 * each process decides alike.
 */
export function choose(all: readonly Near[], asked: AskedRequest): FormChoice {
  const whole = longest(all.filter((one) => one.isWhole))
  if (whole !== undefined) return { near: whole }
  const edited = asked.request.hasTools ? editedIn(all, asked) : undefined
  if (edited !== undefined) return { near: edited, isEdit: true }
  const near = longest(all)
  const lefts = all.flatMap(({ stored, live }) =>
    stored.left.map((form) => {
      const length = form.links.length - 1
      const isIn = length > (near?.common ?? 0) && commonLinks(form.links, asked.chain()) === length
      return { near: { stored, live, common: length, isWhole: false }, form, common: isIn ? length : 0 }
    }),
  )
  const left = lefts.reduce<(typeof lefts)[number] | undefined>((best, one) => (one.common > (best?.common ?? 0) ? one : best), undefined)
  return left === undefined ? { near } : { near: left.near, left }
}

/** A request as it is compared. */
export function askedIn(request: ModelRequest, { session, parent }: Sender): AskedRequest {
  const isNamed = session !== undefined
  const { api, messages } = request
  return {
    request,
    isNamed,
    continues: isNamed && parent === undefined,
    chain: once(() => chainOf(messages)),
    said: once(() => saidIn(request)),
    traces: once(() => new TracesSoFar(api, isNamed).of(messages)),
  }
}

/** The question on the side, among those of a conversation, that a request continues. `common`: the messages that it has of the conversation. */
export function branchIn({ branches }: Remembered, { request: { messages }, chain }: AskedRequest, common: number): BranchMark | undefined {
  return branches.find(([length, link]) => length > common && length < messages.length && linkOf(chain()[length] as string) === link)
}

/** True if most of a conversation is in a request. */
export function isMost({ stored, common }: Near): boolean {
  return common * 2 >= stored.form.links.length - 1
}

/**
 * True if a request that begins like a conversation has none of its answers, and is another one: it has answers of its model, or is the
 * first of a chat whose host names no session and that begins like one of an earlier process. Hosts begin all of theirs with the same messages.
 */
export function isNewChat({ live, common }: Near, { request: { hasTools, messages }, isNamed }: AskedRequest): boolean {
  if (!hasTools || messages.slice(0, common).some(isAnswer)) return false
  return (live === undefined && !isNamed) || messages.slice(common).some(isAnswer)
}

/** The conversation of another session that a request continues under a new name, as a fork or a copy does. */
export function forkedFrom(all: readonly Near[], { request: { messages } }: AskedRequest): Near | undefined {
  const near = messages.some(isAnswer) ? longest(all) : undefined
  return near !== undefined && messages.slice(0, near.common).some(isAnswer) ? near : undefined
}

/** The form of a request that leaves its conversation as it is. */
export function asideOf({ stored: { form }, common }: Near, { request, chain }: AskedRequest): SentForm {
  const { length } = request.messages
  const sent = opened(form, chain(), common, request)
  return sent === undefined ? asTheyAre(0, length) : withRest(sent, length)
}

/** The longest one, of equal ones the latest. */
function longest(all: readonly Near[]): Near | undefined {
  return all.reduce<Near | undefined>((best, one) => (one.common > 0 && one.common >= (best?.common ?? 0) ? one : best), undefined)
}

/** The conversation that a request continues although its host changed something early in it. */
function editedIn(all: readonly Near[], asked: AskedRequest): Near | undefined {
  const { isNamed, said, traces } = asked
  if (isNamed) {
    const isEdited = ({ stored: { form }, common }: Near): boolean =>
      form.traces === undefined ? isLong(form, traces().length - 1) : isEditOf(form.traces, traces(), common)
    const hasGoneOn = ({ stored, common }: Near): boolean =>
      stored.form.traces !== undefined &&
      branchIn(stored, asked, common) === undefined &&
      isGoneOn(stored.form.traces, traces(), common, asked.request.messages.slice(0, common).some(isUsers))
    const found = all.findLast(isEdited) ?? all.findLast(hasGoneOn)
    if (found !== undefined) return found
  }
  // After a resume, a host may write all of its history in another form.
  if (!all.some(({ stored }) => stored.form.said.length > 0) || said().chain.length === 1) return undefined
  const lengths = lengthsOf(said(), isNamed)
  const same = all.map((one) => ({ one, length: lengthAnew(one.stored.form.said, lengths) })).filter(({ one, length }) => length > 0 && isSame(one, traces()))
  return same.reduce<(typeof same)[number] | undefined>((best, found) => (found.length >= (best?.length ?? 0) ? found : best), undefined)?.one
}

/** True if a form of an earlier version, which has no traces, is taken for the same conversation. If most of it is missing, the host has compacted it. */
function isLong(form: StoredForm, length: number): boolean {
  return length > 2 && length * 2 >= form.links.length - 1
}

/** True if the outputs of a chat that has the same answers are those that it had. */
function isSame({ stored: { form } }: Near, traces: Traces): boolean {
  return form.traces === undefined || hasOutputs(form.traces, traces)
}

/** A known conversation beside a request with this chain. `live`: those of this process, of which it may be one. */
export function nearIn(stored: Remembered, live: readonly Conversation[], chain: readonly string[]): Near {
  const common = commonLinks(stored.form.links, chain)
  const isWhole = common > 0 && common === stored.form.links.length - 1
  return { stored, live: live.find(({ id }) => id === stored.id), common, isWhole }
}

/** The number of messages that a stored form and a chain have in common. */
export function commonLinks(links: readonly string[], chain: readonly string[]): number {
  let most = Math.min(links.length, chain.length) - 1
  while (most > 0 && links[most] !== linkOf(chain[most] as string)) most -= 1
  return most
}

/** A form for the first messages of a request; undefined if it is damaged, or splits calls from their results. */
export function opened(form: StoredForm, chain: readonly string[], common: number, { api, messages }: ModelRequest): Unsealed | undefined {
  const found = common === 0 ? undefined : form.open(chain, common)
  const own = messages.slice(0, common)
  return found !== undefined && isPaired(appliedItems(own, withRest(found, common)), own, shapeOf(api)) ? found : undefined
}

/** Works once, at its first use. */
function once<T extends object>(work: () => T): () => T {
  let done: T | undefined
  return () => (done ??= work())
}
