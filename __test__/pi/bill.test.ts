/** What the extension says it saved is the bill of a plain Pi that did the same, less its own; to the cent. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { billOf } from '../../extensions/provider.ts'
import { branchOf, cleanUp, readSession, startRpc } from '../rig/pi.ts'
import type { PiRpc } from '../rig/pi.ts'
import { calls } from '../rig/reply.ts'
import { lastOf } from '../rig/request.ts'
import { command, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))
const COST = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 }

/** What a person does. Without the extension, the first four do nothing. */
type Step = 'roll' | 'undo' | 'off' | 'on' | 'compact' | 'fork' | { say: string } | { goto: number }

const say = (...names: string[]): Step[] => names.map((name) => ({ say: `read ${name}` }))

const SCENARIOS: [name: string, steps: Step[]][] = [
  ['a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g', 'h')]],
  ['a roll and an undo with no call between', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'undo', ...say('f', 'g')]],
  ['an undo after a call', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), 'undo', ...say('g', 'h')]],
  ['off and on', [...say('a', 'b', 'c', 'd'), 'off', ...say('e', 'f'), 'on', 'roll', ...say('g', 'h')]],
  ['a step back behind a roll, and a roll there', [...say('a', 'b', 'c', 'd'), 'roll', ...say('e', 'f'), { goto: 2 }, ...say('g', 'h', 'i'), 'roll', ...say('j')]],
  ['a fork after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g'), 'fork', ...say('h', 'i')]],
  ['a compaction after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), 'compact', ...say('g', 'h', 'i')]],
  ['reads of the same files again', [...say('a', 'b', 'a', 'c', 'b', 'd', 'a'), 'roll', ...say('e', 'b', 'f')]],
]

interface Outcome {
  cost: number
  saved: number | undefined
}

/** Does it in a Pi of its own. Returns the bill of the branch, and what the last point says was saved, in dollars. */
async function run(steps: readonly Step[], isManaged: boolean): Promise<Outcome> {
  const { server, home, load } = await setUp(
    (request, n) => {
      if (request.kind === 'summary') return 'SUMMARY'
      const said = lastOf(request, 'user')!.text
      const name = /read (\w)$/m.exec(said)?.[1]
      return request.messages.at(-1)!.role === 'user' && name !== undefined
        ? calls(['read', { path: `${name}.txt` }, `call_${n}`])
        : `answer about ${said}`
    },
    { model: { cost: COST }, settings: { compaction: { keepRecentTokens: 2000 } } },
  )
  for (const name of 'abcdefghij') put(home, `${name}.txt`, lines(name, 500))
  const start = (args: string[] = []) => startRpc({ ...load, args, extension: isManaged ? [load.extension, NAVIGATE] : [NAVIGATE] })
  const rpc = await start()
  for (const step of steps) await take(rpc, step, isManaged)
  const { sessionFile } = await rpc.state()
  await rpc.close()
  server.check()
  const branch = branchOf(readSession(sessionFile).entries)
  const point = branch.findLast((entry) => entry['customType'] === 'pi-context-manager')?.['data'] as { saved?: number } | undefined
  return { cost: billOf(branch as never).cost, saved: isManaged ? ((point?.saved ?? 0) * COST.input) / 1e6 : undefined }
}

async function take(rpc: PiRpc, step: Step, isManaged: boolean): Promise<void> {
  if (step === 'compact') await rpc.command({ type: 'compact' })
  else if (step === 'fork') {
    const { messages } = await rpc.command({ type: 'get_fork_messages' })
    await rpc.command({ type: 'fork', entryId: messages.at(-1).entryId })
  } else if (typeof step === 'string') {
    if (isManaged) await command(rpc, `/context ${step}`)
  } else if ('say' in step) await rpc.prompt(step.say)
  else {
    const { sessionFile } = await rpc.state()
    const answers = branchOf(readSession(sessionFile).entries).filter((entry) => entry.type === 'message' && entry['message'].role === 'assistant' && entry['message'].stopReason === 'stop')
    await command(rpc, `/goto ${answers[step.goto]!.id}`)
  }
}

test.each(SCENARIOS)('%s', async (_name, steps) => {
  const [own, plain] = [await run(steps, true), await run(steps, false)]
  process.stderr.write(`${_name}: $${own.cost.toFixed(4)} beside $${plain.cost.toFixed(4)}, said $${own.saved!.toFixed(4)}\n`)
  expect(Math.abs(plain.cost - own.cost - own.saved!)).toBeLessThan(0.01)
})
