/** Old calls become lines in a long turn of the real Pi: requests stay valid, and all of it can be had again. */
import { afterEach, expect, test } from 'vitest'
import { checkAllToolPairs, checkAppendOnly, checkToolPairs } from '../../rig/checks.ts'
import { SOON } from '../../rig/extension.ts'
import { cleanUp, readSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { lastOf, resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { command, setUp } from './support.ts'

afterEach(cleanUp)

/** Calls of the turn. */
const STEPS = 60

/** The results behind whose reference lines stand. */
function withLines(request: ModelRequest): string[] {
  return [...resultsById(request).values()].filter((text) => /^toolcall_ref id=\S+ .*\n/.test(text))
}

test.each<Api>(['openai-completions', 'anthropic-messages', 'openai-responses'])('%s', async (api) => {
  let step = 0
  let wanted: string | undefined
  const { server, load } = await setUp(
    (request) => {
      if (lastOf(request, 'user')!.text.startsWith('back')) {
        return request.messages.at(-1)!.role === 'tool' ? 'There it is.' : calls(['read', { path: `id=${wanted}` }, 'call_back'])
      }
      if (step === STEPS) return 'done'
      step += 1
      return calls(['bash', { command: `echo step ${step} of many; seq 1000 1400` }, `call_${step}`])
    },
    { api, context: SOON },
  )
  let rpc = await startRpc(load)
  await rpc.prompt('take all the steps')
  const turn = server.agentRequests.slice()
  checkAllToolPairs(turn)
  const rolls = turn.slice(1).filter((request, index) => {
    try {
      checkAppendOnly([turn[index]!, request])
      return false
    } catch {
      return true
    }
  })
  expect(rolls.length).toBeGreaterThan(0)
  expect(rolls.length).toBeLessThan(STEPS / 4)
  const last = turn.at(-1)!
  expect(last.messages.length).toBeLessThan(2 * STEPS)
  expect(last.messages.find((message) => message.role === 'user')!.text).toContain('take all the steps')
  for (const message of last.messages) expect(message.text !== '' || message.calls.length + message.results.length > 0).toBe(true)
  const line = withLines(last)[0]!
    .split('\n')
    .find((one) => one.startsWith('bash echo step '))!
  expect(line).toMatch(/^bash echo step \d+ of many; seq 1000 1400 -> 402 lines id=[0-9a-f]{8}$/)

  // Another process sends the same bytes.
  const { sessionFile } = await rpc.state()
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  rpc = await startRpc({ ...load, args: ['--continue'] })
  wanted = line.split('id=')[1]
  await rpc.prompt('back, please')
  const [first, second] = server.agentRequests.slice(turn.length)
  checkAppendOnly([last, first!])
  const number = /step (\d+) of/.exec(line)![1]
  expect(resultsById(second!).get('call_back')).toContain(`step ${number} of many`)

  // Text that a roll of this process takes can be restored whole.
  const count = (request: ModelRequest): number => request.messages.length
  await command(rpc, '/context roll')
  await rpc.prompt('back, once more')
  const rolled = server.agentRequests.at(-2)!
  checkToolPairs(rolled)
  await command(rpc, '/context undo')
  await rpc.prompt('back, and again')
  const back = server.agentRequests.at(-2)!
  checkToolPairs(back)
  expect(count(rolled)).toBeLessThan(count(back))

  // And stays so for the next process. Only what a later call has brought back again may leave.
  await rpc.close()
  rpc = await startRpc({ ...load, args: ['--continue'] })
  const undone = server.agentRequests.at(-1)!
  await rpc.prompt('back, after a restart')
  const again = server.agentRequests.at(-2)!
  checkToolPairs(again)
  const steps = (request: ModelRequest): [string, string][] => [...resultsById(request)].filter(([id]) => id.startsWith('call_') && !id.startsWith('call_back'))
  // Text that has become stale meanwhile may leave with the first request of a process, if the cache does not have it any more.
  const broughtBack = steps(undone).filter(([id, text]) => resultsById(rolled).get(id) !== text)
  expect(broughtBack.length).toBeGreaterThan(0)
  expect(steps(again)).toEqual(expect.arrayContaining(broughtBack))
  await rpc.close()
  const { entries } = readSession(sessionFile)
  expect(entries.some((entry) => entry.type === 'context_edit' && entry['replacement'] === null)).toBe(true)
})
