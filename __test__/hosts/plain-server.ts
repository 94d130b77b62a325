/** A provider of chat completions that does not stream, for clients that are nothing but `fetch`. */
import { createServer } from 'node:http'
import { listening } from '../../rig/listening.ts'

/** A request's body, as far as the tests look at it. */
interface PlainRequest {
  messages: { role: string; content: string }[]
}

/** Starts a server on loopback that gives one answer after the other. Its address has `/v1`. */
export async function startPlainServer(answers: readonly object[]): Promise<{ url: string; requests: PlainRequest[] }> {
  const requests: PlainRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push(JSON.parse(Buffer.concat(chunks).toString()))
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ choices: [{ message: answers[requests.length - 1] }] }))
    })
  })
  return { url: `${await listening(server)}/v1`, requests }
}

/** The answers of a model that reads `a.txt`. */
export const READS_A: readonly object[] = [
  { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'read', arguments: '{"path":"a.txt"}' } }] },
  { role: 'assistant', content: 'a.txt has 40 lines' },
]
