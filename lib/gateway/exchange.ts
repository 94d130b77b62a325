/** One request on its way: upstream with its headers, and the answer back, byte for byte and as it comes. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { AnswerReader } from './answer.ts'
import type { Answered } from './answer.ts'
import { decoderOf } from './body.ts'
import { ORIGIN_WIDE, passedOn, valuesOf, withValue } from './headers.ts'
import type { Api } from './request.ts'
import { redirectFor } from './routes.ts'
import type { Upstream } from './upstream.ts'

/** The request that is sent. */
export interface Outgoing {
  target: URL
  /** The whole body, or its beginning if `rest` is set. */
  body: Buffer | undefined
  /** Where the rest of the body comes from. */
  rest: IncomingMessage | undefined
  /** Headers to send instead of the client's own. */
  headers?: readonly string[]
  /** The beginning of the gateway's own paths: its token, if it has one. */
  prefix?: string
}

/** How an exchange ended. */
export interface Outcome {
  /** The upstream's status; 0 if there was no answer. */
  status: number
  /** The facts read from the answer; undefined unless a format was given and the answer was complete. */
  answered: Answered | undefined
  /** The text of an answer with the status 400. */
  refusal: string | undefined
  /** The client left before the end. */
  isAborted: boolean
  /** Milliseconds until the answer's head. */
  headMs: number
}

/**
 * Carries out an exchange. Rejects only if the upstream can't be reached; then nothing has been answered. If either side
 * leaves in the middle, the other side's connection ends in the same way.
 */
export async function exchange(upstream: Upstream, client: IncomingMessage, response: ServerResponse, outgoing: Outgoing, api?: Api): Promise<Outcome> {
  const started = performance.now()
  const { target, body, rest, headers = client.rawHeaders, prefix = '' } = outgoing
  const isWhole = rest === undefined
  const passed = passedOn(headers, ['host', ...(isWhole ? ['content-length'] : [])])
  const hasBody = body !== undefined && (body.length > 0 || client.headers['content-length'] !== undefined)
  const length = isWhole && hasBody ? ['content-length', String(body.length)] : []
  const method = client.method ?? 'GET'
  const begin = (): ClientRequest => upstream.request(target, method, ['Host', target.host, ...passed, ...length])
  let request = begin()
  const left = onLeave(response, () => request.destroy())
  try {
    const answer = await answerTo(request, body, rest).catch((error: unknown) => {
      // The upstream has closed an idle connection in the moment in which it was used again; it has seen nothing.
      if (!isWhole || left.isGone || !request.reusedSocket || (error as { code?: string }).code !== 'ECONNRESET') throw error
      request = begin()
      return answerTo(request, body, rest)
    })
    const headMs = performance.now() - started
    const refused = answer.statusCode === 400 && api !== undefined ? beginningOf(answer) : undefined
    const answered = await passBack(answer, response, (location) => redirectFor(location, target, prefix), api)
    return { status: answer.statusCode ?? 0, answered, refusal: refused?.(), isAborted: left.isGone, headMs }
  } catch (error) {
    if (left.isGone) return { status: 0, answered: undefined, refusal: undefined, isAborted: true, headMs: performance.now() - started }
    throw error
  } finally {
    left.stop()
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

function answerTo(request: ClientRequest, body: Buffer | undefined, rest: IncomingMessage | undefined): Promise<IncomingMessage> {
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

/** Sends an answer on. Resolves when both sides are done with it. */
function passBack(answer: IncomingMessage, response: ServerResponse, redirect: (location: string) => string, api: Api | undefined): Promise<Answered | undefined> {
  return new Promise((resolve) => {
    const headers = passedOn(answer.rawHeaders, ORIGIN_WIDE)
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.headers.location === undefined ? headers : withValue(headers, 'location', redirect))
    response.flushHeaders()
    const watched = api === undefined || answer.statusCode !== 200 ? undefined : watch(answer, api)
    let isComplete = false
    answer.once('end', () => (isComplete = answer.complete))
    // What breaks off must not look complete: the client gets a broken connection, as it would have.
    const broken = (): void => {
      if (!isComplete) response.destroy()
    }
    answer.once('error', broken)
    answer.once('close', broken)
    response.once('error', () => answer.destroy())
    response.once('close', () => void Promise.resolve(watched?.()).then(resolve, () => resolve(undefined)))
    answer.pipe(response)
  })
}

/** Reads the beginning of a plain answer along. Returns a function that tells it. */
function beginningOf(answer: IncomingMessage): () => string {
  let text = ''
  answer.on('data', (chunk: Buffer) => {
    if (text.length < LONGEST_REFUSAL) text += chunk.toString('utf8')
  })
  return () => text
}

/** In UTF-16 units. */
const LONGEST_REFUSAL = 64 * 1024

/** Reads along. Returns a function that tells what was read once everything has come. */
function watch(answer: IncomingMessage, api: Api): (() => Promise<Answered>) | undefined {
  const reader = new AnswerReader(api, String(answer.headers['content-type'] ?? ''))
  const decoder = decoderOf(valuesOf(answer.rawHeaders, 'content-encoding')[0])
  if (decoder === null) return undefined
  if (decoder === undefined) {
    answer.on('data', (chunk: Buffer) => reader.write(chunk))
    return async () => reader.end()
  }
  decoder.on('data', (chunk: Buffer) => reader.write(chunk))
  // A damaged answer is the client's to judge.
  const done = new Promise<void>((resolve) => void decoder.on('error', () => resolve()).once('close', resolve))
  answer.on('data', (chunk: Buffer) => {
    if (decoder.writable) decoder.write(chunk)
  })
  answer.once('close', () => (decoder.writable ? decoder.end() : undefined))
  decoder.once('end', () => decoder.destroy())
  return async () => {
    await done
    return reader.end()
  }
}
