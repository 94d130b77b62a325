/** One request on its way: upstream with its headers, and the answer back, byte for byte and as it comes. */
import { Transform } from 'node:stream'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AnswerReader } from './answer.ts'
import type { Answered } from './answer.ts'
import { canDecode, codingsOf, Decoding } from './coding.ts'
import { Gathered } from './gather.ts'
import { framingOf, ORIGIN_WIDE, passedOn, valuesOf, withValue } from './headers.ts'
import type { Api } from './request.ts'
import { redirectFor } from './routes.ts'
import type { Upstream } from './upstream.ts'

/** The request that is sent. */
export interface Outgoing {
  target: URL
  /** The whole body, or its beginning if `rest` is set. */
  body: Buffer | undefined
  /** The source of the rest of the body. */
  rest: IncomingMessage | undefined
  /** Headers to send instead of the client's own. */
  headers?: readonly string[]
  /** The beginning of the gateway's own paths: its token, if it has one. */
  prefix?: string
}

/** The parts of an answer to read while it passes. */
export interface Watched {
  api: Api
  /** Gets the text of an answer with the status 400, or its beginning, before the client has all of it. */
  onRefusal: (text: string) => void
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

/** A connection that is closed within this time after a request began to leave on it was closed before, in milliseconds. */
const CLOSING_MS = 100

/**
 * Carries out an exchange. Never rejects: what went wrong before anything was answered is in the outcome. If either side
 * leaves in the middle, the other side's connection ends in the same way.
 */
export async function exchange(upstream: Upstream, client: IncomingMessage, response: ServerResponse, outgoing: Outgoing, watched?: Watched): Promise<Outcome> {
  const started = performance.now()
  const { target, body, rest, headers = client.rawHeaders, prefix = '' } = outgoing
  const passed = ['Host', target.host, ...passedOn(headers, ['host', 'content-length']), ...framingOf(client, body, rest)]
  const begin = (): Attempt => new Attempt(upstream.request(target, client.method ?? 'GET', passed))
  let attempt = begin()
  const left = onLeave(response, () => attempt.request.destroy())
  const outcome = (more: Partial<Outcome>): Outcome => ({ status: 0, answered: undefined, unread: undefined, isAborted: left.isGone, isSent: attempt.request.writableFinished, headMs: performance.now() - started, ...more })
  try {
    for (;;) {
      try {
        const answer = await attempt.answer(body, rest)
        const headMs = performance.now() - started
        const read = await passBack(answer, response, (location) => redirectFor(location, target, prefix), watched)
        return outcome({ status: answer.statusCode ?? 0, ...read, headMs })
      } catch (error) {
        if (left.isGone) return outcome({})
        if (rest !== undefined || !attempt.wasInVain(error)) {
          // The upstream may have worked on it. Only the client can know whether to ask again, as it would have without us.
          if (attempt.request.reusedSocket) response.destroy()
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
  #socket: Socket | undefined
  #read = 0
  #since = 0

  constructor(request: ClientRequest) {
    this.request = request
    request.once('socket', (socket: Socket) => {
      this.#socket = socket
      this.#read = socket.bytesRead
      this.#since = performance.now()
    })
  }

  /** Sends it. Rejects if no answer comes. */
  answer(body: Buffer | undefined, rest: IncomingMessage | undefined): Promise<IncomingMessage> {
    const { request } = this
    return new Promise((resolve, reject) => {
      request.once('response', resolve)
      // Also after the answer has begun; the answer itself tells then.
      request.on('error', reject)
      // An answer such as 101 or a tunnel is not asked for here.
      request.once('close', () => reject(new Error('the connection was closed before an answer came')))
      if (rest === undefined) request.end(body)
      else {
        if (body !== undefined) request.write(body)
        rest.pipe(request)
      }
    })
  }

  /**
   * True if the upstream can't have seen it: it had closed an idle connection while this was on its way. Then no
   * byte arrives, and the connection ends at once. A request whose connection closes later may have been worked on, and would be billed again.
   */
  wasInVain(error: unknown): boolean {
    const { code } = error as { code?: string }
    const isClosed = this.request.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')
    return isClosed && this.#socket?.bytesRead === this.#read && performance.now() - this.#since < CLOSING_MS
  }
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

/** Sends an answer on. Resolves when both sides are done with it. */
function passBack(answer: IncomingMessage, response: ServerResponse, redirect: (location: string) => string, watched: Watched | undefined): Promise<Read | undefined> {
  return new Promise((resolve) => {
    const headers = passedOn(answer.rawHeaders, ORIGIN_WIDE)
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.headers.location === undefined ? headers : withValue(headers, 'location', redirect))
    // The head leaves at once. Beside bytes it is written as it came; beside a text, node would write it in UTF-8.
    response.write(NOTHING)
    const read = watched !== undefined && answer.statusCode === 200 ? watch(answer, watched.api) : undefined
    let isComplete = false
    answer.once('end', () => (isComplete = answer.complete))
    // An answer that breaks off must not look complete: the client gets a broken connection, as without the gateway.
    const broken = (): void => {
      if (!isComplete) response.destroy()
    }
    answer.once('error', broken)
    answer.once('close', broken)
    response.once('error', () => answer.destroy())
    response.once('close', () => void Promise.resolve(read?.()).then(resolve, () => resolve(undefined)))
    if (watched === undefined || answer.statusCode !== 400) answer.pipe(response)
    else answer.pipe(untilHeard(answer, watched.onRefusal)).pipe(response)
  })
}

const NOTHING = Buffer.alloc(0)

/** The part of a refusal that is looked at, in bytes. */
const LONGEST_REFUSAL = 64 * 1024

/** Lets a refusal pass, and holds its last piece until its text has been heard: the client's next request may come at once. */
function untilHeard(answer: IncomingMessage, hear: (text: string) => void): Transform {
  const text = new Gathered()
  const codings = codingsOf(valuesOf(answer.rawHeaders, 'content-encoding'))
  const decoding = canDecode(codings)
    ? new Decoding(codings, (bytes) => {
        text.add(bytes)
        if (text.size > LONGEST_REFUSAL) decoding?.stop()
      })
    : undefined
  let last: Buffer | undefined
  return new Transform({
    transform(bytes: Buffer, _encoding, done) {
      decoding?.write(bytes)
      done(null, last)
      last = bytes
    },
    flush(done) {
      void Promise.resolve(decoding?.end()).then(() => {
        hear(text.bytes.toString('utf8', 0, LONGEST_REFUSAL))
        done(null, last)
      })
    },
  })
}

/** The parts read from an answer while it passed. */
type Read = Pick<Outcome, 'answered' | 'unread'>

/** Reads along what was billed. Returns a function that tells it once everything has come. */
function watch(answer: IncomingMessage, api: Api): () => Promise<Read> {
  const reader = new AnswerReader(api)
  const codings = codingsOf(valuesOf(answer.rawHeaders, 'content-encoding'))
  const named = codings.map((name) => name.slice(0, 40)).join(', ')
  let size = 0
  answer.on('data', (bytes: Buffer) => (size += bytes.length))
  if (!canDecode(codings)) return async () => ({ answered: reader.end(), unread: size === 0 ? undefined : `it is in the coding "${named}"` })
  const decoding = new Decoding(codings, (bytes) => reader.write(bytes))
  answer.on('data', (bytes: Buffer) => decoding.write(bytes))
  return async () => {
    const isSound = await decoding.end()
    const answered = reader.end()
    // An answer that broke off, or that has its figures, needs no explanation.
    const isUnread = size > 0 && answer.complete && answered.usage === undefined && !(isSound && reader.isRead)
    return { answered, unread: isUnread ? (isSound ? 'it is neither a stream of events nor JSON' : `it is not in the coding "${named}" that it names`) : undefined }
  }
}
