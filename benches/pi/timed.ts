/** The extension with a clock around each of its handlers; TIMES names the file that gets the milliseconds. */
import { writeFileSync } from 'node:fs'
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'
import contextManager from '../../extension/index.ts'

export default function timed(pi: ExtensionAPI): void {
  const times: [event: string, milliseconds: number][] = []
  const on = (event: string, handler: (event: unknown, ctx: unknown) => unknown) =>
    (pi.on as (event: string, handler: unknown) => () => void)(
      event,
      async (payload: unknown, ctx: unknown) => {
        const start = performance.now()
        try {
          return await handler(payload, ctx)
        } finally {
          times.push([event, performance.now() - start])
          if (event === 'session_shutdown')
            writeFileSync(process.env['TIMES'] as string, JSON.stringify(times))
        }
      },
    )
  contextManager(
    new Proxy(pi, { get: (target, name) => (name === 'on' ? on : Reflect.get(target, name, target)) }),
  )
}
