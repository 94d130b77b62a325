/** Long sessions whose turns have parts of the provider's own. */
import { expect } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import type { Part, Reply } from '../../rig/reply.ts'
import { rewritten } from '../../rig/checks.ts'

/** A text of sentences that begins with a name. */
export const words = (name: string, count: number): string => `${name} ${'says a sentence that is long enough to matter. '.repeat(count)}`

export const raw = (value: object): Part => ({ raw: value })

/** A step of a turn, given the number of the turn. */
export type Step = (n: number) => Part[]

/**
 * A model that takes the steps of the turn that the prompt names (`turn 3: a web search`), then makes two more calls, then answers. `shell` gives a
 * call that shows a file; `isDone` tells the messages of finished steps.
 */
export function model(
  turns: Record<string, Step[]>,
  shell: (name: string) => Part,
  isDone: (message: ModelRequest['messages'][number]) => boolean,
): (request: ModelRequest) => Reply {
  return (request) => {
    const at = request.messages.findLastIndex(({ role, text }) => role === 'user' && /^turn /m.test(text))
    const [, number = '', kind = ''] = /^turn (\d+): (.*)$/m.exec(request.messages[at]!.text)!
    const n = Number(number)
    const steps = turns[kind]!
    const done = request.messages.slice(at + 1).filter(isDone).length
    const step = steps[done]
    if (step !== undefined) return { parts: step(n) }
    return done < steps.length + 2 ? { parts: [shell(`more${n}_${done}`)] } : { text: words(`done ${n}`, 20) }
  }
}

/** Nothing was refused, less than `share` of the session was sent at the end, and each change of the past was a roll. */
export function checkSession(server: ModelServer, gateway: Gateway, sent: object, share: number): void {
  server.check()
  expect(server.requests.filter(({ status }) => status !== 200)).toEqual([])
  const last = server.requests.at(-1)!.raw.toString()
  expect(last).toContain('toolcall_ref')
  expect(last.length).toBeLessThan(share * JSON.stringify(sent).length)
  expect(rewritten(server.requests).length).toBeLessThanOrEqual(gateway.ledger.sessions.reduce((sum, { rolls }) => sum + rolls.length, 0))
}
