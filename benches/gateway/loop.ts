/** A client of the gateway's bench. */
import { request as send } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from '../figure.ts'

const TOOLS = ['Bash', 'mcp__context__activate'].map((name) => ({ name, input_schema: { type: 'object' } }))

/** The header that asks the bench's server for an answer in this number of stamped pieces. */
export const PIECES = 'x-bench-pieces'

/** A conversation of calls and outputs. */
export class Loop {
  readonly session: string
  readonly messages: object[] = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }]

  constructor(session: string) {
    this.session = session
  }

  add(): void {
    const id = `toolu_${this.session}_${this.messages.length}`
    this.messages.push({ role: 'assistant', content: [{ type: 'tool_use', id, name: 'Bash', input: { command: id } }] })
    this.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text(3000, this.messages.length) }] })
  }
}

function bodyOf({ messages }: Loop): string {
  return JSON.stringify({ model: 'claude-sonnet-4-5', stream: true, tools: TOOLS, messages })
}

/** Sends a request. */
function begin(url: string, loop: Loop, body: string, headers: Record<string, string> = {}): ClientRequest {
  const own = { 'content-type': 'application/json', 'x-claude-code-session-id': loop.session }
  return send(`${url}/v1/messages`, { method: 'POST', headers: { ...own, ...headers } }).end(body)
}

/** Milliseconds on the way, for each of this number of stamped pieces of an answer. */
export async function pieces(url: string, loop: Loop, count: number): Promise<number[]> {
  const [response] = (await once(begin(url, loop, bodyOf(loop), { [PIECES]: String(count) }), 'response')) as [IncomingMessage]
  const times: number[] = []
  response.on('data', (chunk: Buffer) => {
    const now = performance.now()
    for (const [, stamp] of chunk.toString().matchAll(/"stamp":([\d.]+)/g)) times.push(now - Number(stamp))
  })
  await once(response, 'end')
  return times
}

/** Milliseconds from the start of a request to the first byte of its answer. */
export async function firstByte(url: string, loop: Loop, aborts = false): Promise<number> {
  const body = bodyOf(loop)
  const start = performance.now()
  const request = begin(url, loop, body)
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
