/**
 * A model provider on loopback whose answers are scripted. It records every request as it arrived and streams its
 * answers in OpenAI's chat completions or responses format, in Anthropic's messages format, or in Bedrock's, told apart by the path. A
 * strict one binds its reasoning to the conversation and checks it (strict.ts).
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { blockRefusals } from './blocks.ts'
import { codeAssistAnswer, geminiEncoder, geminiModel, GeminiSignatures, isCodeAssist } from './gemini.ts'
import { deadline, onCleanUp } from './cleanup.ts'
import { estimateTokens, PrefixCache } from './meter.ts'
import { Gate, partsOf } from './reply.ts'
import type { Api, ModelRequest, Usage, WirePart } from './exchange.ts'
import type { Reply, Script } from './reply.ts'
import { apiOf, readRequest } from './request.ts'
import { Strict } from './strict.ts'
import type { StrictOptions } from './strict.ts'
import { encoder, errorBody } from './wire.ts'

/** Starts a server on a free port of 127.0.0.1; `cleanUp` closes it. `strict`: it binds its reasoning. */
export async function startModelServer(script: Script, strict?: StrictOptions): Promise<ModelServer> {
  const server = new ModelServer(script, strict === undefined ? undefined : new Strict(strict))
  await server.listen()
  onCleanUp(() => server.close())
  return server
}

/** Signs a part of an answer, if it is reasoning. */
type Sign = (part: WirePart) => WirePart

/** A running scripted provider. Make one with {@link startModelServer}. */
export class ModelServer {
  /** Every model request so far, in order of arrival. */
  readonly requests: ModelRequest[] = []
  /** Problems: an exhausted or failing script, a malformed request. A test should find it empty. */
  readonly problems: string[] = []
  /** The answers so far, oldest first. */
  readonly said: WirePart[][] = []
  /** The source of the next answers; may be replaced at any time. A list is then counted from its own start. */
  #script: Script
  #scriptStart = 0
  readonly #strict: Strict | undefined
  readonly #gemini = new GeminiSignatures()
  /** Requests refused for their reasoning, which the script has not seen. */
  #refused = 0
  /** By model. */
  readonly #caches = new Map<string, PrefixCache>()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #gates = new Set<Gate>()
  readonly #waiting = new Set<{ test: (request: ModelRequest) => boolean; found: (request: ModelRequest) => void }>()
  #port = 0

  constructor(script: Script, strict?: Strict) {
    this.#script = script
    this.#strict = strict
    this.#server = createServer((incoming, response) => {
      this.#serve(incoming, response).catch((error: unknown) => {
        this.problems.push(`request to ${incoming.url}: ${String(error)}`)
        response.destroy()
      })
    })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  /** The server's root, such as `http://127.0.0.1:40123`. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /**
   * Returns the `baseUrl` of a provider entry in Pi's models.json: Anthropic's client adds `/v1` itself, and Bedrock has none.
   */
  baseUrl(api: Api): string {
    return api === 'anthropic-messages' || api === 'bedrock-converse-stream' ? this.url : `${this.url}/v1`
  }

  /** The agent's own requests, without those for compaction and branch summaries. */
  get agentRequests(): ModelRequest[] {
    return this.requests.filter((request) => request.kind === 'agent')
  }

  /** Replaces the script from the next request on. */
  script(next: Script): void {
    this.#script = next
    this.#scriptStart = this.requests.length - this.#refused
  }

  /**
   * The first request from number `from` on that passes `test`, already arrived or still to come. Rejects after
   * `timeoutMs`, saying what did arrive.
   */
  request(test: (request: ModelRequest) => boolean = () => true, from = 0, timeoutMs = 60_000): Promise<ModelRequest> {
    const arrived = this.requests.slice(from).find(test)
    if (arrived !== undefined) return Promise.resolve(arrived)
    const found = new Promise<ModelRequest>((resolve) => {
      this.#waiting.add({ test: (request) => request.n >= from && test(request), found: resolve })
    })
    return deadline(found, timeoutMs, () => {
      const lines = this.requests.map((request) => `${request.n} ${request.kind}, ${request.messages.length} messages`)
      return `the expected model request did not come; arrived:\n  ${lines.join('\n  ') || 'none'}`
    })
  }

  /** Throws when anything went wrong on the server's side. */
  check(): void {
    if (this.problems.length > 0) throw new Error(`the model server reports:\n  ${this.problems.join('\n  ')}`)
  }

  /** Listens; called once by {@link startModelServer}. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Drops every connection and stops; answers that wait at a gate end there. Idempotent. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    for (const gate of this.#gates) gate.release()
    if (!this.#server.listening) return
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const raw = Buffer.concat(chunks)
    const path = incoming.url ?? '/'
    const api = apiOf(path)
    const other = api === undefined ? codeAssistAnswer(path) : undefined
    if (other !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(other))
      return
    }
    if (incoming.method !== 'POST' || api === undefined) {
      this.problems.push(`unexpected ${incoming.method} ${path}`)
      response.writeHead(404).end()
      return
    }
    const request = this.#record(api, path, incoming, raw, response)
    const checked = this.#strict?.check(request)
    if (checked !== undefined) request.verdict = checked.verdict
    const refusal =
      checked?.verdict.refusal ?? blockRefusals(request, this.said)[0] ?? (api === 'google-generative-ai' ? this.#gemini.refusal(request.body) : undefined)
    if (refusal !== undefined) this.#refused += 1
    const reply = refusal === undefined ? await this.#answer(request) : { status: 400, error: refusal }
    await this.#send(request, reply, response, checked?.sign)
  }

  #record(api: Api, path: string, incoming: IncomingMessage, raw: Buffer, response: ServerResponse): ModelRequest {
    const given = JSON.parse(raw.toString('utf8'))
    const body = isCodeAssist(path) ? { ...given.request, model: given.model } : given
    const aborted = new Promise<boolean>((resolve) => {
      response.on('close', () => resolve(!response.writableFinished))
    })
    const request: ModelRequest = {
      n: this.requests.length,
      api,
      path,
      headers: incoming.headers,
      raw,
      body,
      ...readRequest(api, body),
      aborted,
    }
    this.requests.push(request)
    for (const entry of this.#waiting) {
      if (!entry.test(request)) continue
      this.#waiting.delete(entry)
      entry.found(request)
    }
    return request
  }

  async #answer(request: ModelRequest): Promise<Reply> {
    const script = this.#script
    try {
      const position = request.n - this.#refused - this.#scriptStart
      const answer = typeof script === 'function' ? await script(request, request.n) : script[position]
      if (answer === undefined) throw new Error(`the script has no answer number ${position}`)
      return typeof answer === 'string' ? { text: answer } : answer
    } catch (error) {
      const sentence = `request ${request.n}: ${error instanceof Error ? error.message : String(error)}`
      this.problems.push(sentence)
      return { status: 400, error: `script failed: ${sentence}` }
    }
  }

  async #send(request: ModelRequest, reply: Reply, response: ServerResponse, sign: Sign = (part) => part): Promise<void> {
    // A client that hangs up makes writes fail; `aborted` tells it, the error event itself says nothing more.
    response.on('error', () => {})
    const model = geminiModel(request.path) ?? String(request.body.model ?? 'scripted')
    const cache = this.#caches.get(model) ?? new PrefixCache()
    this.#caches.set(model, cache)
    const metered = cache.add(request.prompt)
    const fresh = metered.prompt - metered.cached
    const isLong = request.raw.includes('"ttl":"1h"')
    if (reply.before !== undefined) await this.#wait(reply.before, request)
    request.status = reply.status ?? 200
    if (request.status !== 200) {
      const sentence = reply.error ?? `scripted error ${request.status}`
      const kind = request.api === 'bedrock-converse-stream' ? { 'x-amzn-errortype': 'ValidationException' } : {}
      response.writeHead(request.status, { 'content-type': 'application/json', ...kind, ...reply.headers })
      response.end(errorBody(request.api, request.status, sentence))
      return
    }
    const parts = partsOf(reply, request.n).map((part) => (part instanceof Gate || typeof part === 'string' ? part : sign(part)))
    const called = parts.some((part) => !(part instanceof Gate) && typeof part !== 'string' && 'call' in part)
    const usage: Usage = {
      input: isLong ? 0 : fresh,
      output: estimateTokens(JSON.stringify(parts.filter((part) => !(part instanceof Gate)))),
      cacheRead: metered.cached,
      cacheWrite: isLong ? fresh : 0,
      ...reply.usage,
    }
    request.usage = usage
    const isStream = request.path.includes(':stream')
    const isGemini = request.api === 'google-generative-ai'
    const wire = isGemini
      ? geminiEncoder(model, `answer_${request.n}`, isStream, this.#gemini, isCodeAssist(request.path))
      : encoder(request.api, model, `answer_${request.n}`, request.verdict?.transformations, isLong)
    const type =
      request.api === 'bedrock-converse-stream' ? 'application/vnd.amazon.eventstream' : isGemini && !isStream ? 'application/json' : 'text/event-stream'
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...reply.headers })
    this.said.push(parts.filter((part): part is WirePart => !(part instanceof Gate) && typeof part !== 'string'))
    response.write(wire.begin(usage))
    for (const part of parts) {
      if (part instanceof Gate) await this.#wait(part, request)
      else response.write(wire.part(part as WirePart))
      if (response.destroyed) return
    }
    if (reply.cut === true) {
      await new Promise((written) => response.write(': cut here\n\n', written))
      response.destroy()
      return
    }
    response.end(wire.end(reply.finish ?? (called ? 'toolUse' : 'stop'), usage))
  }

  /** Waits at a gate until it is released or the client has hung up. */
  async #wait(gate: Gate, request: ModelRequest): Promise<void> {
    this.#gates.add(gate)
    await Promise.race([gate.pass(), request.aborted])
    this.#gates.delete(gate)
  }
}
