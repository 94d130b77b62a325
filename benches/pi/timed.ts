/** The extension with a clock around each of its handlers; TIMES names the file that gets the milliseconds. */
import { writeFileSync } from 'node:fs'
import type { ContextWithSystemEvent, ExtensionAPI } from '@earendil-works/pi-coding-agent'
import contextManager from '../../extensions/index.ts'

/** Duration of one handler call. */
export interface Time {
  event: string
  milliseconds: number
  /** For a `context_with_system` event: the number of its messages, and the milliseconds that copying them takes. */
  messages?: number
  copy?: number
}

export default function timed(pi: ExtensionAPI): void {
  const times: Time[] = []
  const on = (event: string, handler: (event: unknown, ctx: unknown) => unknown) =>
    (pi.on as (event: string, handler: unknown) => () => void)(event, async (payload: unknown, ctx: unknown) => {
      const more = event === 'context_with_system' ? copied(payload as ContextWithSystemEvent) : {}
      const start = performance.now()
      try {
        return await handler(payload, ctx)
      } finally {
        times.push({ event, milliseconds: performance.now() - start, ...more })
        if (event === 'session_shutdown') writeFileSync(process.env['TIMES'] as string, JSON.stringify(times))
      }
    })
  contextManager(new Proxy(pi, { get: (target, name) => (name === 'on' ? on : Reflect.get(target, name, target)) }))
}

function copied({ messages }: ContextWithSystemEvent): { messages: number; copy: number } {
  const start = performance.now()
  structuredClone(messages)
  return { messages: messages.length, copy: performance.now() - start }
}
