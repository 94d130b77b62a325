/** An answer on its way back to the client: byte for byte, as it comes, and read along. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AnswerReader } from './answer.ts'
import type { Answered } from './answer.ts'
import { canDecode, codingsOf, decoded, Decoding } from './coding.ts'
import { Gathered } from './gather.ts'
import { answerFraming, ORIGIN_WIDE, passedOn, trailersOf, transferCodings, valuesOf, withValue } from './headers.ts'
import type { Api } from './request.ts'

/** The parts of an answer to read while it passes. */
export interface Watched {
  api: Api
  /** Gets the text of an answer with the status 400, or its beginning, before the client has all of it. */
  onRefusal: (text: string) => void
}

/** The facts that were read from an answer while it passed. */
export interface Read {
  /** The facts read from the answer; undefined unless a format was given. */
  answered: Answered | undefined
  /** Why nothing could be read of an answer that may have been billed; undefined if something could. */
  unread: string | undefined
}

/** The context of an answer. */
export interface Answering {
  /** Makes the `Location` for the client. */
  redirect: (location: string) => string
  /** True if the upstream's connection has failed. Node takes that for the end of an answer that has no length. */
  isCut: () => boolean
}

/**
 * Sends an answer on. Resolves when both sides are done with it. An answer that breaks off reaches the client up to there,
 * and its connection breaks off there.
 */
export function passBack(
  answer: IncomingMessage,
  response: ServerResponse,
  { redirect, isCut }: Answering,
  watched: Watched | undefined,
): Promise<Read | undefined> {
  return new Promise((resolve) => {
    const headers = [...passedOn(answer.rawHeaders, ORIGIN_WIDE), ...answerFraming(answer, response.req)]
    response.writeHead(
      answer.statusCode ?? 502,
      answer.statusMessage,
      answer.headers.location === undefined ? headers : withValue(headers, 'location', redirect),
    )
    // The head leaves at once. Beside bytes it is written as it came; beside a text, node would write it in UTF-8.
    response.write(NOTHING)
    const bill = watched !== undefined && answer.statusCode === 200 ? new Bill(answer, watched.api) : undefined
    const refusal = watched !== undefined && answer.statusCode === 400 ? new Refusal(answer, watched.onRefusal) : undefined
    // The last piece of a refusal waits until its text has been heard: the client's next request may come at once.
    let held: Buffer | undefined
    const write = (bytes: Buffer | undefined): void => {
      if (bytes !== undefined && !response.write(bytes)) answer.pause()
    }
    const take = (bytes: Buffer): void => {
      bill?.write(bytes)
      if (refusal === undefined) return write(bytes)
      refusal.write(bytes)
      write(held)
      held = bytes
    }
    let isOver = false
    const finish = async (): Promise<void> => {
      if (isOver) return
      isOver = true
      // Of an answer that breaks off while the client reads slowly, the end still waits here.
      for (let rest = answer.read() as Buffer | null; rest !== null; rest = answer.read() as Buffer | null) take(rest)
      await refusal?.end()
      write(held)
      if (!answer.complete || (isCut() && endsWithConnection(answer, response.req))) return breakOff(response, answer)
      const trailers = trailersOf(answer.rawTrailers)
      if (trailers.length > 0) response.addTrailers(trailers)
      response.end()
    }
    for (const end of ['end', 'error', 'close']) answer.once(end, () => void finish().catch(() => response.destroy()))
    answer.on('data', take)
    response.on('drain', () => answer.resume())
    response.once('error', () => answer.destroy())
    response.once('close', () => void Promise.resolve(bill?.end()).then(resolve, () => resolve(undefined)))
  })
}

const NOTHING = Buffer.alloc(0)

/** True if only the end of the connection ends an answer (RFC 9112, 6.3). What fails behind the end of another one is not part of it. */
function endsWithConnection({ statusCode, headers }: IncomingMessage, { method }: Pick<IncomingMessage, 'method'>): boolean {
  if (method === 'HEAD' || statusCode === 204 || statusCode === 304) return false
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
}

/** Ends an answer so that the client gets what was written, and sees that this is not all. */
function breakOff(response: ServerResponse, answer: IncomingMessage): void {
  // Without a frame, a client takes the end of the connection for the end of the answer: only a reset tells.
  const isFramed = response.chunkedEncoding || answer.headers['content-length'] !== undefined
  const end = (socket: Socket): unknown => (isFramed ? socket.destroySoon() : socket.write(NOTHING, () => socket.resetAndDestroy()))
  if (response.destroyed || response.socket !== null) {
    if (response.socket !== null) end(response.socket)
    return
  }
  // It waits behind an earlier answer on the same connection, and is written when its turn comes.
  response.once('socket', (socket: Socket) => process.nextTick(end, socket))
}

/** The part of a refusal that is looked at, in bytes. */
const LONGEST_REFUSAL = 64 * 1024

/** The text of a refusal: as its header says, as it came, and unpacked, because a proxy may have changed one without the other. */
class Refusal {
  readonly #text = new Gathered()
  readonly #raw = new Gathered()
  readonly #decoding: Decoding | undefined
  readonly #hear: (text: string) => void

  constructor(answer: IncomingMessage, hear: (text: string) => void) {
    const codings = allCodings(answer)
    this.#hear = hear
    this.#decoding = canDecode(codings) ? new Decoding(codings, (bytes) => this.#add(bytes)) : undefined
  }

  write(bytes: Buffer): void {
    if (this.#raw.size <= LONGEST_REFUSAL) this.#raw.add(bytes)
    this.#decoding?.write(bytes)
  }

  /** Resolves once it has been heard. */
  async end(): Promise<void> {
    await this.#decoding?.end()
    const [text, raw] = [this.#text.bytes, this.#raw.bytes]
    const unpacked = await Promise.all([text, raw].map((bytes) => (isGzip(bytes) ? decoded(bytes, ['gzip'], LONGEST_UNPACKED).catch(() => NOTHING) : NOTHING)))
    this.#hear([text, raw, ...unpacked].map((bytes) => bytes.toString('utf8', 0, LONGEST_REFUSAL)).join('\n'))
  }

  #add(bytes: Buffer): void {
    this.#text.add(bytes)
    if (this.#text.size > LONGEST_REFUSAL) this.#decoding?.stop()
  }
}

/** The largest refusal that is unpacked although no header says so, in bytes. */
const LONGEST_UNPACKED = 1024 * 1024

/** True if bytes begin as gzip does (RFC 1952, 2.3.1). */
function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** The bill that an answer states. */
class Bill {
  readonly #answer: IncomingMessage
  readonly #reader: AnswerReader
  readonly #named: string
  readonly #decoding: Decoding | undefined
  #size = 0

  constructor(answer: IncomingMessage, api: Api) {
    const codings = allCodings(answer)
    this.#answer = answer
    this.#reader = new AnswerReader(api)
    this.#named = codings.map((name) => name.slice(0, 40)).join(', ')
    this.#decoding = canDecode(codings) ? new Decoding(codings, (bytes) => this.#reader.write(bytes)) : undefined
  }

  write(bytes: Buffer): void {
    this.#size += bytes.length
    this.#decoding?.write(bytes)
  }

  /** Returns what was read, once everything has come. */
  async end(): Promise<Read> {
    if (this.#decoding === undefined) return { answered: this.#reader.end(), unread: this.#size === 0 ? undefined : `it is in the coding "${this.#named}"` }
    const isSound = await this.#decoding.end()
    const answered = this.#reader.end()
    // An answer that broke off, or that has its figures, needs no explanation.
    const isUnread = this.#size > 0 && this.#answer.complete && answered.usage === undefined && !(isSound && this.#reader.isRead)
    return {
      answered,
      unread: isUnread ? (isSound ? 'it is neither a stream of events nor JSON' : `it is not in the coding "${this.#named}" that it names`) : undefined,
    }
  }
}

/** The codings of a body, in the order in which they were applied: those of its content, then those of its transfer. */
function allCodings(answer: IncomingMessage): string[] {
  return [...codingsOf(valuesOf(answer.rawHeaders, 'content-encoding')), ...transferCodings(answer)]
}
