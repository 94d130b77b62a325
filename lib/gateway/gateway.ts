/**
 * The gateway: a server on loopback between agents and their providers. Model requests go out with what the projection makes
 * of their conversation; everything else passes as it is, and so does every answer.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { readFileSync } from 'node:fs'
import { browserRefusal, isFrontDoor, isNavigation, isWebSocket, nameOf, wantsHtml } from './access.ts'
import type { RollReceipt } from '../../index.js'
import { GatewayBills, hostSession } from './bills.ts'
import { readBody, textOf } from './body.ts'
import type { Body, Plain } from './body.ts'
import { canDecode, codingsOf, decoded } from './coding.ts'
import { sentenceOf } from '../core/index.ts'
import type { Conversation, ConversationOptions } from './conversation.ts'
import { Conversations } from './conversations.ts'
import type { ConversationLook, Placed } from './conversations.ts'
import { editOf, isWhole, spliced } from '../projection/index.ts'
import { exchange } from './exchange.ts'
import type { Outcome } from './exchange.ts'
import { Forms } from './forms.ts'
import { withValue } from './headers.ts'
import { Holdout } from './holdout.ts'
import { senderOf } from './identity.ts'
import type { Sender } from './identity.ts'
import { BillLedger } from './ledger.ts'
import { answerMcp } from './mcp.ts'
import { askedOf, BINDING_FIELD, isAnthropicApi, isBindingRefusal, isFieldRefusal, ObservedBinding } from '../models/index.ts'
import { Lifetimes } from './lifetime/lifetimes.ts'
import { modelOf, withBinding } from './models.ts'
import type { GatewayOptions } from './options.ts'
import { apiOf, folderOf, inEnvelope, listEdit, readRequest } from './request.ts'
import type { Api, ModelRequest } from './request.ts'
import { ANTHROPIC, isSame, OWN, routeOf } from './routes.ts'
import type { Upstreams } from './routes.ts'
import { Page } from './page/page.ts'
import { PageServer } from './page/server.ts'
import { refuse, say } from './refusal.ts'
import type { ProjectedModel } from '../projection/index.ts'
import { withoutThread, withoutThreads } from './threads.ts'
import { GatewayTools } from './tools.ts'
import { isLoopback, LARGEST_HEAD, Upstream } from './upstream.ts'

/** The lifetime of a cached prompt where nothing else is known, in milliseconds. */
const USUAL_LIFETIME_MS = 300_000

/** The time for the last notes of a gateway that is closed, in milliseconds. */
const LAST_NOTES_MS = 1_000

/** The page's port follows the gateway's at this distance: far enough for a second gateway on the next port. */
const PAGE_PORT = 10_000

/** A running gateway. Make one with {@link startGateway}. */
export class Gateway {
  /** The secret of our own tools. */
  readonly secret: string
  readonly ledger: BillLedger
  readonly conversations: Conversations
  /** The page on which a user sees it. */
  readonly page: Page
  readonly #pageServer: PageServer
  readonly #options: GatewayOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #upstream: Upstream
  readonly #upstreams: Upstreams
  readonly #tools: GatewayTools
  readonly #holdout: Holdout
  readonly #bills: GatewayBills | undefined
  /** Origins that have refused the field for bound reasoning. */
  readonly #unasked = new Set<string>()
  readonly #seen = new ObservedBinding()
  readonly #lifetimes: Lifetimes
  readonly #told = new Set<string>()
  /** Requests that are being served. */
  readonly #serving = new Set<Promise<void>>()

  constructor(options: GatewayOptions) {
    this.#options = options
    this.secret = options.secret ?? randomBytes(18).toString('base64url')
    this.#upstream = new Upstream(options.env ?? process.env, options.restMs)
    this.#upstreams = { anthropic: ANTHROPIC, ...options.upstreams }
    this.ledger = new BillLedger(options.now ?? Date.now)
    this.#holdout = new Holdout(options.holdout ?? 0)
    this.#bills =
      options.billsPath === undefined
        ? undefined
        : new GatewayBills(options.billsPath, (error) => this.#tell('bills', `what calls cost can't be noted, so "usage" lacks them: ${sentenceOf(error)}`))
    const modelOfRequest = (request: ModelRequest): ProjectedModel => modelOf(request, options.models, this.#seen)
    const { cacheLifetime: option = 'auto', isAnthropic = isAnthropicApi, now = Date.now } = options
    this.#lifetimes = new Lifetimes({ option, isAnthropic, modelOf: modelOfRequest, now })
    const conversation: ConversationOptions = {
      open: options.open,
      modelOf: modelOfRequest,
      onNext: (owner, request) => this.#lifetimes.choose(owner, request, this.ledger.costOf(owner.id)),
      keptOf: (id, request, next) => this.ledger.keptOf(id, request, next),
      onTrouble: (kind: string, sentence: string) => this.#tell(kind, sentence),
      onRoll: (id: string, receipt: RollReceipt) => this.ledger.rolled(id, receipt),
      ...(options.limitMs === undefined ? {} : { limitMs: options.limitMs }),
      ...(options.now === undefined ? {} : { now: options.now }),
    }
    this.conversations = new Conversations(
      conversation,
      new Forms(options.open.redact === undefined || options.open.redact === false ? options.formsPath : undefined),
      options.cwd,
    )
    this.#tools = new GatewayTools(this.conversations)
    this.page = new Page({ ledger: this.ledger, conversations: this.conversations })
    this.#pageServer = new PageServer(this.page)
    this.#server = createServer({ maxHeaderSize: LARGEST_HEAD }, (request, response) => {
      const serving = this.#serve(request, response).finally(() => this.#serving.delete(serving))
      this.#serving.add(serving)
    })
    // A model may think for long before its first byte, and clients keep their connections.
    this.#server.requestTimeout = 0
    this.#server.keepAliveTimeout = 65_000
    this.#server.on('connection', (socket) => {
      socket.setNoDelay(true)
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    // Beyond node's own limit, headers would be left out without a word; the size of a head has a limit.
    this.#server.maxHeadersCount = 0
  }

  /** The address, such as `http://127.0.0.1:41234`, with the token if there is one. */
  get url(): string {
    const { port, address } = this.#server.address() as AddressInfo
    const host = address.includes(':') ? `[${address}]` : address
    return `http://${host}:${port}${this.#prefix}`
  }

  /** Returns what its paths begin with. */
  get #prefix(): string {
    const { token } = this.#options
    return token === undefined ? '' : `/${token}`
  }

  /** The address of the MCP server. It needs the header `Authorization: Bearer` with the {@link secret}. */
  get mcpUrl(): string {
    return `${this.url}/_context/mcp`
  }

  /** The address of the page, with its key. It has its own origin, on loopback; undefined if it could not listen there. */
  get pageUrl(): string | undefined {
    const address = this.#pageAddress
    return address === undefined ? undefined : `${address}?key=${this.page.key}`
  }

  get #pageAddress(): string | undefined {
    const { origin } = this.#pageServer
    return origin === undefined ? undefined : `${origin}${OWN}/`
  }

  /** Listens. Rejects with the error of the system if the port is taken. */
  async listen(): Promise<void> {
    const { host = '127.0.0.1', port = 0 } = this.#options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    // Without the page, the agents still have their gateway.
    await this.#pageServer
      .listen(host === '::1' ? '::1' : '127.0.0.1', port === 0 || port + PAGE_PORT > 65_535 ? 0 : port + PAGE_PORT)
      .catch((error: unknown) => {
        this.#tell('page', `there is no page: ${sentenceOf(error)}`)
      })
  }

  /** Ends all connections and closes all sessions. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    this.page.close()
    await Promise.all([closed, this.#pageServer.close()])
    // A bill is noted only once its answer has been read to the end.
    await Promise.race([Promise.all(this.#serving), new Promise((resolve) => setTimeout(resolve, LAST_NOTES_MS).unref())])
    await this.conversations.close()
    await this.#bills?.flush()
    this.#upstream.close()
  }

  /** Serves one request. Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    request.on('error', () => {})
    try {
      await this.#route(request, response)
    } catch (error) {
      if (response.destroyed) return
      if (response.headersSent) response.destroy()
      else refuse(request.headers, response, 502, sentenceOf(error))
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/', headers, method } = request
    const { token } = this.#options
    const { port } = this.#server.address() as AddressInfo
    if (!this.#isAddressed(headers.host)) return refuse(headers, response, 421, `this gateway is not ${headers.host ?? 'without a name'}`)
    // A client that offers another protocol, as Java's does with HTTP/2, gets its answer in this one. Node loses what follows an offer.
    if (headers.upgrade !== undefined) response.shouldKeepAlive = false
    // Codex then uses plain requests at once. The gateway can't edit the messages of a socket.
    if (isWebSocket(headers)) return refuse(headers, response, 426, 'the gateway has no WebSockets')
    const where = `the gateway is for coding agents; ${this.#pageAddress === undefined ? 'it has no page' : `its page is at ${this.#pageAddress} with the key that the terminal shows`}`
    const isFront = method === 'GET' && isFrontDoor(url, headers)
    if (isFront && (token === undefined || wantsHtml(headers))) return say(headers, response, 200, where)
    const why = browserRefusal(headers, port, token !== undefined)
    if (why !== undefined) return refuse(headers, response, 403, isNavigation(headers) ? where : why)
    const route = routeOf(url, headers, this.#upstreams, token)
    switch (route.kind) {
      case 'refused':
        return refuse(headers, response, route.status, route.sentence)
      case 'own':
        return this.#own(request, response, route.path)
      case 'upstream':
        return this.#forward(request, response, route)
    }
  }

  /** True if a request names this gateway as its host. A page from elsewhere whose name leads here does not. */
  #isAddressed(host: string | undefined): boolean {
    if (host === undefined) return true
    const name = nameOf(host)
    return isLoopback(name) || name === this.#options.host || (this.#options.host !== undefined && !isLoopback(this.#options.host))
  }

  /** Our own tools, for the program that has their secret. The page is elsewhere. */
  async #own(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { headers } = request
    if (path !== '/mcp') return refuse(headers, response, 404, `there is no ${OWN}${path.split('?')[0]} here`)
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
    if (!isSame(bearer, this.secret)) return refuse(headers, response, 401, 'this needs the secret that the gateway has printed')
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST')
      return refuse(headers, response, 405, 'this MCP server has no streams')
    }
    const { bytes } = await readBody(request, 1024 * 1024)
    const { status, body } = await answerMcp(bytes.toString('utf8'), this.#tools, version())
    if (body === undefined) response.writeHead(status).end()
    else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  async #forward(client: IncomingMessage, response: ServerResponse, { target, path }: { target: URL; path: string }): Promise<void> {
    const api = client.method === 'POST' ? apiOf(target.pathname) : undefined
    if (api === undefined) {
      // Without a body there is nothing to wait for, and the request can be made again.
      const { headers } = client
      const isBare = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
      const { failure } = await exchange(this.#upstream, client, response, {
        target,
        path,
        body: undefined,
        rest: isBare ? undefined : client,
        prefix: this.#prefix,
      })
      if (failure !== undefined) throw failure
      return
    }
    // While the body comes and is parsed, the trackers can look at the disk.
    const look = this.conversations.look(api, senderOf(client.headers, { body: {} }, this.#options.program))
    const body = await readBody(client)
    const edited = body.isWhole ? await this.#edited(client, body, { api, target }, look) : undefined
    if (response.destroyed) return
    const rest = body.isWhole ? undefined : client
    const outgoing = {
      target,
      path,
      body: edited?.bytes ?? body.bytes,
      rest,
      prefix: this.#prefix,
      ...(edited?.headers === undefined ? {} : { headers: edited.headers }),
    }
    const outcome = await exchange(this.#upstream, client, response, outgoing, { api, onRefusal: (text) => this.#refused(edited, target, text) })
    if (edited !== undefined) this.#note(edited, outcome)
    if (outcome.failure !== undefined) throw outcome.failure
  }

  /** Returns the replacement of a body; undefined if the body itself is sent and there is nothing to note about it. */
  async #edited(
    client: IncomingMessage,
    body: Body,
    { api, target }: { api: Api; target: URL },
    look: ConversationLook | undefined,
  ): Promise<Edited | undefined> {
    const codings = codingsOf(client.headers['content-encoding'])
    if (!canDecode(codings)) {
      this.#tell('coding', `bodies in the coding "${codings.join(', ')}" pass unread; Node 22.15 or newer reads zstd`)
      return undefined
    }
    let request: ModelRequest | undefined
    let plain: Plain
    try {
      const bytes = await decoded(body.bytes, codings)
      plain = { text: textOf(bytes), bytes: bytes.length }
      request = readRequest(api, JSON.parse(plain.text), this.#tools.isConnected, target.pathname)
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
      this.#tell('form', `a request passed as it was: ${sentenceOf(error)}`)
      return undefined
    }
  }

  async #formed(client: IncomingMessage, request: ModelRequest, plain: Plain, look: ConversationLook | undefined): Promise<Edited> {
    const sender = senderOf(client.headers, request, this.#options.program)
    const own = { request, sender, bytes: undefined, headers: undefined, plainBytes: plain.bytes }
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
      : withBinding(request, withoutThread(request.body), withValue(uncoded, 'anthropic-beta', withoutThreads))
    const edits = [editOf(request.body, body), list].flatMap((edit) => (edit !== undefined && 'fields' in edit ? Object.entries(edit.fields) : []))
    const edited = edits.length === 0 ? plain.text : spliced(plain.text, inEnvelope(request, { fields: Object.fromEntries(edits) }))
    const text = this.#lifetimes.applied(request, conversation, edited)
    return text === plain.text ? { ...own, placed } : { ...own, placed, bytes: Buffer.from(text), headers }
  }

  #note({ request, sender, placed, bytes, plainBytes }: Edited, outcome: Outcome): void {
    const { answered } = outcome
    if (answered !== undefined && answered.transformations.length > 0) this.#seen.answered(request.model, answered.transformations)
    const conversation = placed?.conversation
    if (conversation !== undefined && request.canRecall) for (const callId of answered?.recalls ?? []) this.#tools.note(callId, conversation)
    const lifetime = placed?.isAside === true ? undefined : this.#lifetimes.answered(conversation, request, answered?.usage)
    if (lifetime !== undefined) this.#tell('lifetime', lifetime)
    const isHeldOut = placed === undefined
    const { contextWindow: window, cacheTtlMs: lifetimeMs = USUAL_LIFETIME_MS } = modelOf(request, this.#options.models)
    const usages = this.ledger.note({
      window,
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
    })
    if (outcome.unread !== undefined)
      this.#tell('unread', `an answer could not be read, so what it cost is not known ("usage" counts such calls): ${outcome.unread}`)
    // An answered request was billed, even where no figure says how much. A request that was sent and never answered may have been.
    if (usages === undefined && outcome.status !== 200 && !(outcome.status === 0 && outcome.isSent)) return
    const folder = conversation?.cwd ?? folderOf(request) ?? this.#options.cwd ?? process.cwd()
    const session = hostSession(conversation?.id ?? sender.session ?? `${sender.host}:`)
    this.#bills?.add({
      at: (this.#options.now ?? Date.now)(),
      session,
      folder,
      model: request.model,
      ...usages,
      isHeldOut,
      ...(sender.isPlan === true && { isPlan: true }),
      ...this.#lifetimes.noted(conversation, placed?.isAside === true),
    })
  }

  #refused(edited: Edited | undefined, target: URL, text: string): void {
    if (edited === undefined) return
    const { model, body } = edited.request
    // The refusal of reasoning names the field, too, as a way out.
    if (isBindingRefusal(text)) {
      this.#seen.refused(model)
      this.#tell(
        'binding',
        `the provider has refused reasoning of ${model} because something before it has changed; from now on nothing changes there within a turn`,
      )
    } else if (isFieldRefusal(text) && askedOf(body) === undefined && edited.bytes?.includes(BINDING_FIELD) === true) {
      this.#unasked.add(target.origin)
      // Without the field, the provider refuses reasoning that no longer fits.
      this.#seen.refused(model)
      this.#tell(
        'field',
        `${target.host} does not take the field that lets a provider drop reasoning; it is no longer sent there, and old reasoning leaves with what has changed before it. The request that was refused can be sent again`,
      )
    }
  }

  #tell(kind: string, sentence: string): void {
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    this.#options.onWarning?.(`pi-context-manager: ${sentence}`)
  }
}

/** A request that was understood, and the bytes that are sent for it. */
interface Edited {
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

export type { Conversation }

/** Starts a gateway. Rejects with the error of the system if its port is taken, or if the environment names certificates that can't be read. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host = '127.0.0.1', token } = options
  if (!isLoopback(host) && token === undefined) throw new Error(`listening on ${host} lets others use the gateway; give it a secret token (--token)`)
  const gateway = new Gateway(options)
  await gateway.listen()
  return gateway
}

function version(): string {
  return (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version
}
