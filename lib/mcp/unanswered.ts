/** The requests of a client that wait for their answers: a client may close its side as soon as it has asked. */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'

/** The longest wait for the last answers, in milliseconds. The client may have gone. */
const LAST_ANSWERS_MS = 30_000

/** Counts the requests that come over a transport, which is not connected yet. Returns a wait until all are answered, or too late to be. */
export function unanswered(transport: Transport): () => Promise<void> {
  const waiting = new Set<unknown>()
  let done = (): void => {}
  const over = (id: unknown): void => {
    waiting.delete(id)
    if (waiting.size === 0) done()
  }
  transport.onmessage = (message) => {
    if (!('method' in message)) return
    if ('id' in message) waiting.add(message.id)
    else if (message.method === 'notifications/cancelled') over(message.params?.['requestId'])
  }
  const send = transport.send.bind(transport)
  transport.send = async (message, options) => {
    await send(message, options)
    if (!('method' in message)) over(message.id)
  }
  return () =>
    new Promise((resolve) => {
      done = resolve
      if (waiting.size === 0) return resolve()
      setTimeout(resolve, LAST_ANSWERS_MS).unref()
    })
}
