/** One request on its way upstream with its headers, until it has its answer. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Answered } from './answer.ts'
import { passBack } from './back.ts'
import type { Watched } from './back.ts'
import { framingOf, passedOn, trailersOf } from './headers.ts'
import { redirectFor } from './routes.ts'
import type { Upstream } from './upstream.ts'

/** The request that is sent. */
export interface Outgoing {
  target: URL
  /** Path and query as they are sent. */
  path: string
  /** The whole body, or its beginning if `rest` is set. */
  body: Buffer | undefined
  /** The source of the rest of the body. */
  rest: IncomingMessage | undefined
  /** Headers to send instead of the client's own. */
  headers?: readonly string[]
  /** The beginning of the gateway's own paths: its token, if it has one. */
  prefix?: string
}

/** The end of an exchange. */
export interface Outcome {
  /** The upstream's status; 0 if there was no answer. */
  status: number
  /** The facts read from the answer; undefined unless a format was given and the answer was complete. */
  answered: Answered | undefined
  /** Why nothing could be read of an answer that may have been billed; undefined if something could. */
  unread: string | undefined
  /** The client left before the end. */
  isAborted: boolean
  /** All of the request has left: the upstream may have worked on it. */
  isSent: boolean
  /** Why there was no answer; undefined if there was one, or if the client left. */
  failure?: unknown
  /** Milliseconds until the answer's head. */
  headMs: number
}

/**
 * Carries out an exchange. Never rejects: what went wrong before anything was answered is in the outcome. If either side
 * leaves in the middle, the other side's connection ends in the same way.
 */
export async function exchange(upstream: Upstream, client: IncomingMessage, response: ServerResponse, outgoing: Outgoing, watched?: Watched): Promise<Outcome> {
  const started = performance.now()
  const { target, path, body, rest, headers = client.rawHeaders, prefix = '' } = outgoing
  const passed = ['Host', target.host, ...passedOn(headers, ['host', 'content-length']), ...framingOf(client, body, rest)]
  const begin = (): Attempt => new Attempt(upstream.request(target, path, client.method ?? 'GET', passed), client)
  await connectionsLookedAt()
  let attempt = begin()
  const left = onLeave(response, () => attempt.request.destroy())
  const outcome = (more: Partial<Outcome>): Outcome => ({
    status: 0,
    answered: undefined,
    unread: undefined,
    isAborted: left.isGone,
    isSent: attempt.request.writableFinished,
    headMs: performance.now() - started,
    ...more,
  })
  try {
    for (;;) {
      try {
        const answer = await attempt.answer(body, rest)
        const headMs = performance.now() - started
        const read = await passBack(answer, response, { redirect: (location) => redirectFor(location, target, prefix), isCut: () => attempt.isCut }, watched)
        return outcome({ status: answer.statusCode ?? 0, ...read, headMs })
      } catch (error) {
        if (left.isGone) return outcome({})
        if (!attempt.canRepeat(error)) {
          // The upstream may have worked on it. Only the client can know whether to ask again, as it would have without us.
          // Other failures, such as an answer that makes no sense, are told in a sentence.
          if (attempt.request.reusedSocket && isClosing(error)) response.destroy()
          return outcome({ failure: error })
        }
        attempt = begin()
      }
    }
  } finally {
    left.stop()
  }
}

/** A request on its way to the upstream. */
class Attempt {
  readonly request: ClientRequest
  readonly #client: IncomingMessage
  #socket: Socket | undefined
  #read = 0
  #hasBody = false
  #isCut = false

  /** `client`: the request that it passes on. */
  constructor(request: ClientRequest, client: IncomingMessage) {
    this.request = request
    this.#client = client
    request.once('socket', (socket: Socket) => {
      this.#socket = socket
      this.#read = socket.bytesRead
    })
  }

  /** True if its connection has failed: what ends then ends too early, also where only the connection's end would end it. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** Sends it. Rejects if no answer comes. */
  answer(body: Buffer | undefined, rest: IncomingMessage | undefined): Promise<IncomingMessage> {
    const { request } = this
    this.#hasBody = body !== undefined || rest !== undefined
    return new Promise((resolve, reject) => {
      request.once('response', resolve)
      // Also after the answer has begun; the answer itself tells then.
      request.on('error', (error) => {
        this.#isCut = true
        reject(error)
      })
      // An answer such as 101 or a tunnel is not asked for here.
      request.once('close', () => reject(new Error('the connection was closed before an answer came')))
      const addTrailers = (): void => {
        const trailers = trailersOf(this.#client.rawTrailers)
        if (trailers.length > 0) request.addTrailers(trailers)
      }
      if (rest === undefined) {
        addTrailers()
        request.end(body)
      } else {
        if (body !== undefined) request.write(body)
        rest.once('end', addTrailers)
        rest.pipe(request)
      }
    })
  }

  /**
   * True if its kept connection has ended without an answer, and sending it again changes nothing. Whether the upstream has seen it
   * can't be known: it may have read all of it and closed at once. It would bill a model call twice (RFC 9110, 9.2.2).
   */
  canRepeat(error: unknown): boolean {
    const { reusedSocket, method } = this.request
    return SAFE.has(method) && !this.#hasBody && reusedSocket && isClosing(error) && this.#socket?.bytesRead === this.#read
  }
}

/** Methods that change nothing (RFC 9110, 9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** Resolves when connections that were closed until now are known to be closed: node has looked at all of them once, and told. */
async function connectionsLookedAt(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** The turns of the event loop: until it looks, and until an end that it has found has been told. */
const TURNS = 3

/** True if a connection has ended, and not what came over it was wrong. */
function isClosing(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/** Calls `leave` if the client disconnects before the answer is complete. */
function onLeave(response: ServerResponse, leave: () => void): { isGone: boolean; stop(): void } {
  const closed = (): void => {
    if (response.writableFinished) return
    state.isGone = true
    leave()
  }
  const state = { isGone: false, stop: () => void response.off('close', closed) }
  if (response.destroyed) closed()
  else response.on('close', closed)
  return state
}
