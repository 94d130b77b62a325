/**
 * The model requests of a gateway: which bytes go out for each of them, and what is noted of its answer: what the model was shown,
 * what the call cost, and what the provider refused.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { RollReceipt } from '../../index.js'
import { GatewayBills, hostSession } from './bills.ts'
import { Bodies } from './bodies.ts'
import type { ParsedBody } from './bodies.ts'
import type { Body } from './body.ts'
import { canDecode, codingsOf, decoded } from './coding.ts'
import { sentenceOf } from '../core/index.ts'
import { Conversations } from './conversations.ts'
import type { ConversationLook, Placed } from './conversations.ts'
import { editOf, isWhole } from '../projection/index.ts'
import type { ProjectedModel } from '../projection/index.ts'
import type { Outcome } from './exchange.ts'
import { Forms } from './forms.ts'
import { withValue } from './headers.ts'
import { Holdout } from './holdout.ts'
import { senderOf } from './identity.ts'
import type { Sender } from './identity.ts'
import { BillLedger } from './ledger.ts'
import { askedOf, BINDING_FIELD, isAnthropicApi, isBindingRefusal, isFieldRefusal, ObservedBinding, pricesWith } from '../models/index.ts'
import { Lifetimes } from './lifetime/lifetimes.ts'
import { givenPrices, modelOf, reachOf, withBinding } from './models.ts'
import type { GatewayOptions } from './options.ts'
import { folderOf, inEnvelope, listEdit, listOfApi, readRequest } from './request.ts'
import type { Api, ModelRequest } from './request.ts'
import { splicedBody } from './spliced-body.ts'
import { withoutThread, withoutThreads } from './threads.ts'
import { GatewayTools } from './tools.ts'

/** The lifetime of a cached prompt where nothing else is known, in milliseconds. */
const USUAL_LIFETIME_MS = 300_000

/** A request that was understood, and the bytes that are sent for it. */
export interface EditedRequest {
  request: ModelRequest
  sender: Sender
  /** Undefined for a session that is held out. */
  placed: Placed | undefined
  /** Undefined: the client's own bytes. */
  bytes: Buffer | undefined
  headers: string[] | undefined
  /** The size of the client's body, decoded. */
  plainBytes: number
}

/** Edits model requests, and notes their answers. */
export class ModelCalls {
  readonly ledger: BillLedger
  readonly conversations: Conversations
  /** The tools by which a model gets back what has left its requests. */
  readonly tools: GatewayTools
  readonly #options: GatewayOptions
  readonly #onTrouble: (kind: string, sentence: string) => void
  readonly #holdout: Holdout
  readonly #bills: GatewayBills | undefined
  /** Origins that have refused the field for bound reasoning. */
  readonly #unasked = new Set<string>()
  readonly #seen = new ObservedBinding()
  readonly #bodies = new Bodies()
  readonly #lifetimes: Lifetimes

  /** `onTrouble` gets each trouble with its kind and a sentence for the user. */
  constructor(options: GatewayOptions, onTrouble: (kind: string, sentence: string) => void) {
    const { cacheLifetime: option = 'auto', isAnthropic = isAnthropicApi, now = Date.now } = options
    this.#options = options
    this.#onTrouble = onTrouble
    this.ledger = new BillLedger(now, (model) => pricesWith(model, givenPrices(model, options.models)))
    this.#holdout = new Holdout(options.holdout ?? 0)
    this.#bills =
      options.billsPath === undefined
        ? undefined
        : new GatewayBills(options.billsPath, (error) => onTrouble('bills', `what calls cost can't be noted, so "usage" lacks them: ${sentenceOf(error)}`))
    const modelOfRequest = (request: ModelRequest): ProjectedModel => modelOf(request, options.models, this.#seen)
    this.#lifetimes = new Lifetimes({ option, isAnthropic, modelOf: modelOfRequest, now })
    this.conversations = new Conversations(
      {
        open: options.open,
        modelOf: modelOfRequest,
        onNext: (owner, request) => this.#lifetimes.choose(owner, request, this.ledger.costOf(owner.id)),
        keptOf: (id, request, next) => this.ledger.keptOf(id, request, next),
        onTrouble,
        onRoll: (id: string, receipt: RollReceipt) => this.ledger.rolled(id, receipt),
        ...(options.limitMs === undefined ? {} : { limitMs: options.limitMs }),
        ...(options.now === undefined ? {} : { now: options.now }),
      },
      new Forms(options.open.redact === undefined || options.open.redact === false ? options.formsPath : undefined),
      options.cwd,
    )
    this.tools = new GatewayTools(this.conversations)
  }

  /** Has the trackers look at the disk while the body of a request comes and is parsed. */
  look(api: Api, headers: IncomingHttpHeaders): ConversationLook | undefined {
    return this.conversations.look(api, senderOf(headers, { body: {} }, this.#options.program))
  }

  /** Returns the replacement of a body; undefined if the body itself is sent and there is nothing to note about it. */
  async edited(
    client: IncomingMessage,
    body: Body,
    { api, target }: { api: Api; target: URL },
    look: ConversationLook | undefined,
  ): Promise<EditedRequest | undefined> {
    const codings = codingsOf(client.headers['content-encoding'])
    if (!canDecode(codings)) {
      this.#onTrouble('coding', `bodies in the coding "${codings.join(', ')}" pass unread; Node 22.15 or newer reads zstd`)
      return undefined
    }
    let request: ModelRequest | undefined
    let plain: ParsedBody
    try {
      plain = this.#bodies.parsed(await decoded(body.bytes, codings), listOfApi(api))
      request = readRequest(api, plain.value, this.tools.isConnected, target.pathname)
    } catch {
      // The provider says what is wrong with it.
      return undefined
    }
    if (request === undefined) return undefined
    if (this.#unasked.has(target.origin)) request.cannotAsk = true
    this.#lifetimes.take(request, target, client.headers)
    try {
      return await this.#formed(client, request, plain, look)
    } catch (error) {
      // Such as a body nested so deeply that nothing can be compared with it.
      this.#onTrouble('form', `a request passed as it was: ${sentenceOf(error)}`)
      return undefined
    }
  }

  /** Notes an answer: what it says of the model, and what the call cost. */
  note({ request, sender, placed, bytes, plainBytes }: EditedRequest, outcome: Outcome): void {
    const { answered } = outcome
    const isDoubtful = answered?.isDoubtful === true
    if (answered !== undefined && answered.transformations.length > 0) this.#seen.answered(request.model, answered.transformations)
    const conversation = placed?.conversation
    if (conversation !== undefined && request.canRecall) for (const callId of answered?.recalls ?? []) this.tools.note(callId, conversation)
    const lifetime = placed?.isAside === true ? undefined : this.#lifetimes.answered(conversation, request, isDoubtful ? undefined : answered?.usage)
    if (lifetime !== undefined) this.#onTrouble('lifetime', lifetime)
    const isHeldOut = placed === undefined
    const model = modelOf(request, this.#options.models)
    const { contextWindow: window, cacheTtlMs: lifetimeMs = USUAL_LIFETIME_MS } = model
    const usages = this.ledger.note({
      window,
      reach: reachOf(model),
      lifetimeMs,
      request,
      sender,
      conversation,
      isAside: placed?.isAside ?? false,
      isHeldOut,
      isEdited: bytes !== undefined,
      plainBytes,
      sentBytes: bytes?.length ?? plainBytes,
      outcome,
      lifetime: this.#lifetimes.told(conversation),
      chosen: this.#lifetimes.sentWith(request, conversation),
    })
    if (outcome.unread !== undefined)
      this.#onTrouble('unread', `an answer could not be read, so what it cost is not known ("usage" counts such calls): ${outcome.unread}`)
    if (isDoubtful)
      this.#onTrouble(
        'doubtful',
        `an answer has token counts that are missing, negative, too large or contradict each other; what can't be true counts as 0 ("usage" counts such calls)`,
      )
    // An answered request was billed, even where no figure says how much. A request that was sent and never answered may have been.
    if (usages === undefined && outcome.status !== 200 && !(outcome.status === 0 && outcome.isSent)) return
    const folder = conversation?.folder ?? folderOf(request) ?? this.#options.cwd ?? ''
    const session = hostSession(conversation?.id ?? sender.session ?? `${sender.host}:`)
    const prices = givenPrices(request.model, this.#options.models)
    this.#bills?.add({
      at: (this.#options.now ?? Date.now)(),
      session,
      folder,
      model: request.model,
      ...usages,
      ...(prices !== undefined && { prices }),
      ...(isDoubtful && { isDoubtful }),
      isHeldOut,
      ...(sender.isPlan === true && { isPlan: true }),
      ...this.#lifetimes.noted(conversation, placed?.isAside === true),
    })
  }

  /** Notes a refusal by the provider, so that the next requests are not refused. `text` is its answer. */
  refused(edited: EditedRequest | undefined, target: URL, text: string): void {
    if (edited === undefined) return
    const { model, body } = edited.request
    // The refusal of reasoning names the field, too, as a way out.
    if (isBindingRefusal(text)) {
      this.#seen.refused(model)
      this.#onTrouble(
        'binding',
        `the provider has refused reasoning of ${model} because something before it has changed; from now on nothing changes there within a turn`,
      )
    } else if (isFieldRefusal(text) && askedOf(body) === undefined && edited.bytes?.includes(BINDING_FIELD) === true) {
      this.#unasked.add(target.origin)
      // Without the field, the provider refuses reasoning that no longer fits.
      this.#seen.refused(model)
      this.#onTrouble(
        'field',
        `${target.host} does not take the field that lets a provider drop reasoning; it is no longer sent there, and old reasoning leaves with what has changed before it. The request that was refused can be sent again`,
      )
    }
  }

  /** Closes all sessions, and resolves once the bills are written. */
  async close(): Promise<void> {
    await this.conversations.close()
    await this.#bills?.flush()
  }

  async #formed(client: IncomingMessage, request: ModelRequest, plain: ParsedBody, look: ConversationLook | undefined): Promise<EditedRequest> {
    const sender = senderOf(client.headers, request, this.#options.program)
    const own = { request, sender, bytes: undefined, headers: undefined, plainBytes: plain.bytes.length }
    // An edited conversation stays edited: its model has seen the edits, and may have bound its reasoning to them.
    if (this.#holdout.has(sender.session) && !this.conversations.wasEdited(request, sender)) return { ...own, placed: undefined }
    const placed = await this.conversations.place(request, sender, look)
    const { form, conversation } = placed
    const list = form === undefined || isWhole(form, request.messages.length) ? undefined : listEdit(request, form)
    const uncoded = withValue(client.rawHeaders, 'content-encoding', () => '')
    // Reasoning that the model wrote after an edit is bound to it, even where nothing is edited any longer.
    const isBare = list === undefined && conversation?.wasEdited !== true
    const { body, headers } = isBare
      ? { body: request.body, headers: uncoded }
      : withBinding(request, withoutThread(request.body), withValue(uncoded, 'anthropic-beta', withoutThreads), this.#options.models)
    const edits = [editOf(request.body, body), list].flatMap((edit) => (edit !== undefined && 'fields' in edit ? Object.entries(edit.fields) : []))
    const { fields } = inEnvelope(request, { fields: Object.fromEntries(edits) })
    const edited = edits.length === 0 ? plain.bytes : splicedBody(plain, fields)
    const bytes = this.#lifetimes.applied(request, placed, edited)
    return bytes.equals(plain.bytes) ? { ...own, placed } : { ...own, placed, bytes, headers }
  }
}
