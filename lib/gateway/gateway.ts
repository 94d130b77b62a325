/**
 * The gateway: a server on loopback between agents and their providers. Model requests go out with what the projection makes
 * of their conversation; everything else passes as it is, and so does every answer.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import { browserRefusal, isFrontDoor, isNavigation, isWebSocket, nameOf, wantsHtml } from './access.ts'
import { readBody } from './body.ts'
import { sentenceOf, Warnings } from '../core/index.ts'
import type { Conversations } from './conversations.ts'
import { exchange } from './exchange.ts'
import type { BillLedger } from './ledger.ts'
import { Listener } from './listener.ts'
import { answerMcp } from './mcp.ts'
import { ModelCalls } from './model-calls.ts'
import { noAnswer } from './no-answer.ts'
import type { GatewayOptions } from './options.ts'
import { apiOf } from './request.ts'
import { ANTHROPIC, isSame, OWN, routeOf } from './routes.ts'
import type { Upstreams } from './routes.ts'
import { Page } from './page/page.ts'
import { PageServer } from './page/server.ts'
import { refuse, say } from './refusal.ts'
import { isLoopback, LARGEST_HEAD, Upstream } from './upstream.ts'

/** The time for the last notes of a gateway that is closed, in milliseconds. */
const LAST_NOTES_MS = 1_000

/** The page's port follows the gateway's at this distance: far enough for a second gateway on the next port. */
const PAGE_PORT = 10_000

/** A running gateway. Make one with {@link startGateway}. */
export class Gateway {
  /** The secret of our own tools. */
  readonly secret: string
  /** The page on which a user sees it. */
  readonly page: Page
  readonly #pageServer: PageServer
  readonly #options: GatewayOptions
  readonly #listener: Listener
  readonly #upstream: Upstream
  readonly #upstreams: Upstreams
  readonly #calls: ModelCalls
  readonly #warnings: Warnings
  /** Requests that are being served. */
  readonly #serving = new Set<Promise<void>>()

  constructor(options: GatewayOptions) {
    this.#options = options
    this.secret = options.secret ?? randomBytes(18).toString('base64url')
    this.#upstream = new Upstream(options.env ?? process.env, options.restMs)
    this.#upstreams = { anthropic: ANTHROPIC, ...options.upstreams }
    this.#warnings = new Warnings(options.onWarning)
    this.#calls = new ModelCalls(options, (kind, sentence) => this.#warnings.tell(kind, sentence))
    this.page = new Page(this.#calls)
    this.#pageServer = new PageServer(this.page)
    const server = createServer({ maxHeaderSize: LARGEST_HEAD }, (request, response) => {
      const serving = this.#serve(request, response).finally(() => this.#serving.delete(serving))
      this.#serving.add(serving)
    })
    // A model may think for long before its first byte, and clients keep their connections.
    server.requestTimeout = 0
    server.keepAliveTimeout = 65_000
    server.on('connection', (socket) => socket.setNoDelay(true))
    // Beyond node's own limit, headers would be left out without a word; the size of a head has a limit.
    server.maxHeadersCount = 0
    this.#listener = new Listener(server)
  }

  /** True if a failure, which a warning has told, kept requests as their agents sent them. */
  get hasFailed(): boolean {
    return ['projection', 'form', 'coding'].some((kind) => this.#warnings.has(kind))
  }

  /** The sums of what the agents' sessions cost. */
  get ledger(): BillLedger {
    return this.#calls.ledger
  }

  get conversations(): Conversations {
    return this.#calls.conversations
  }

  /** The address, such as `http://127.0.0.1:41234`, with the token if there is one. */
  get url(): string {
    return `${this.#listener.origin as string}${this.#prefix}`
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
    await this.#listener.listen(port, host)
    // Without the page, the agents still have their gateway.
    await this.#pageServer
      .listen(host === '::1' ? '::1' : '127.0.0.1', port === 0 || port + PAGE_PORT > 65_535 ? 0 : port + PAGE_PORT)
      .catch((error: unknown) => {
        this.#warnings.tell('page', `the page can't be shown: ${sentenceOf(error)}`)
      })
  }

  /** Ends all connections and closes all sessions. */
  async close(): Promise<void> {
    const closed = this.#listener.close()
    this.page.close()
    await Promise.all([closed, this.#pageServer.close()])
    // A bill is noted only once its answer has been read to the end.
    await Promise.race([Promise.all(this.#serving), new Promise((resolve) => setTimeout(resolve, LAST_NOTES_MS).unref())])
    await this.#calls.close()
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
    const { port } = this.#listener
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
    const { status, body } = await answerMcp(bytes.toString('utf8'), this.#calls.tools, version())
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
      if (failure !== undefined) throw noAnswer(failure, target.host)
      return
    }
    const look = this.#calls.look(api, client.headers)
    const body = await readBody(client)
    const edited = body.isWhole ? await this.#calls.edited(client, body, { api, target }, look) : undefined
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
    const outcome = await exchange(this.#upstream, client, response, outgoing, { api, onRefusal: (text) => this.#calls.refused(edited, target, text) })
    if (edited !== undefined) this.#calls.note(edited, outcome)
    if (outcome.failure !== undefined) throw noAnswer(outcome.failure, target.host)
  }
}

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
