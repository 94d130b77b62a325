/** A client of the gateway's bench. */
import { request as send } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from '../figure.ts'
import { FORMATS } from './formats.ts'
import type { Format } from './formats.ts'

/** The header that asks the bench's server for an answer in this number of stamped pieces. */
export const PIECES = 'x-bench-pieces'

/** The place of a server: its origin, and the kind of its paths. */
export interface Server {
  origin: string
  kind: 'plain' | 'gateway'
}

/** A conversation of calls and outputs in a format. */
export class Loop {
  readonly session: string
  readonly format: Format
  readonly messages: object[]
  #calls = 0

  constructor(session: string, format: Format = FORMATS[0]) {
    this.session = session
    this.format = format
    this.messages = [format.wire.said(`go, ${session}`)]
  }

  add(): void {
    this.#calls += 1
    const id = `toolu_${this.session}_${this.#calls}`
    this.messages.push(this.format.wire.called(id, id), this.format.wire.returned(id, text(3000, this.#calls)))
  }
}

function bodyOf({ messages, format }: Loop): string {
  return JSON.stringify(format.wire.body(messages))
}

/** Sends a request. */
function begin({ origin, kind }: Server, { format, session }: Loop, body: string, headers: Record<string, string> = {}): ClientRequest {
  const own = { 'content-type': 'application/json', ...format.wire.headers(session) }
  return send(`${origin}${format.paths[kind]}`, { method: 'POST', headers: { ...own, ...headers } }).end(body)
}

/** Milliseconds on the way, for each of this number of stamped pieces of an answer. */
export async function pieces(server: Server, loop: Loop, count: number): Promise<number[]> {
  const [response] = (await once(begin(server, loop, bodyOf(loop), { [PIECES]: String(count) }), 'response')) as [IncomingMessage]
  const times: number[] = []
  response.on('data', (chunk: Buffer) => {
    const now = performance.now()
    for (const [, stamp] of chunk.toString().matchAll(/"stamp":([\d.]+)/g)) times.push(now - Number(stamp))
  })
  await once(response, 'end')
  return times
}

/** Milliseconds from the start of a request to the first byte of its answer. */
export async function firstByte(server: Server, loop: Loop, aborts = false): Promise<number> {
  const body = bodyOf(loop)
  const start = performance.now()
  const request = begin(server, loop, body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  // A client that leaves gets an error instead.
  const ended = once(response, 'end').catch(() => undefined)
  await once(response, 'data')
  const time = performance.now() - start
  if (aborts) request.destroy()
  else response.resume()
  await ended
  return time
}
