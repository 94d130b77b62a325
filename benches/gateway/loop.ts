/** A client of the gateway's bench. */
import { request as send } from 'node:http'
import { once } from 'node:events'
import { text } from '../figure.ts'

const TOOLS = ['Bash', 'mcp__context__activate'].map((name) => ({ name, input_schema: { type: 'object' } }))

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

/** Milliseconds from the start of a request to the first byte of its answer. */
export async function firstByte(url: string, loop: Loop, aborts = false): Promise<number> {
  const body = JSON.stringify({ model: 'claude-sonnet-4-5', stream: true, tools: TOOLS, messages: loop.messages })
  const start = performance.now()
  const request = send(`${url}/v1/messages`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-claude-code-session-id': loop.session } })
  request.end(body)
  const [response] = await once(request, 'response')
  // A client that leaves gets an error instead.
  const ended = once(response, 'end').catch(() => undefined)
  await once(response, 'data')
  const time = performance.now() - start
  if (aborts) request.destroy()
  else response.resume()
  await ended
  return time
}
