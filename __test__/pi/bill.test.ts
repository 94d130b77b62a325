/** The savings that the extension reports are the bill of a plain Pi that did the same, less its own; to the cent. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { billOf } from '../../extensions/provider.ts'
import { openRecording } from '../../lib/recordings/open.ts'
import { chargesOf } from '../../lib/usage/charges.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { branchOf, cleanUp, readSession, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { calls, Gate } from '../../rig/reply.ts'
import type { Api, Usage } from '../../rig/exchange.ts'
import { command, lines, put, setUp } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))
const COST = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 }

/** Above this many prompt tokens, all of them cost twice as much. */
const STEP = { inputTokensAbove: 40_000, input: 6, output: 30, cacheRead: 0.6, cacheWrite: 0 }

/** A second model of the same provider. */
const DEAR = { id: 'dear', contextWindow: 200_000, maxTokens: 8192, cost: { input: 15, output: 75, cacheRead: 1.5, cacheWrite: 0 } }

/** A user's step. Without the extension, the first four do nothing. */
type Step =
  | 'roll'
  | 'undo'
  | 'off'
  | 'on'
  | 'compact'
  | 'fork'
  | 'abort'
  | 'restart'
  | { say: string }
  | { work: number }
  | { goto: number }
  | { model: string }

/** Differences from the usual provider. */
interface Provider {
  cost?: object
  api?: Api
  env?: Record<string, string>
  /** The provider reports no tokens. */
  isSilent?: true
  /** Number of times that " and so on" is appended to each answer. */
  goesOn?: number
  /** The model's window in tokens. */
  window?: number
  /** Pi's settings for its compaction. */
  compaction?: object
}

const say = (...names: string[]): Step[] => names.map((name) => ({ say: `read ${name}` }))

/** Number of files that each of them reads. */
const READS = 5

/** A summary of the length that Pi's have, the first ones apart. */
const summary = (n: number): string => lines(`summary ${n}`, 60)

/** So many prompts, each with five reads and an answer. */
const work = (count: number, from = 0): Step[] => Array.from({ length: count }, (_, n) => ({ work: from + n }))

const CLAUDE: Provider = { api: 'anthropic-messages', cost: { ...COST, cacheWrite: 3.75 } }

const SCENARIOS: [name: string, steps: Step[], provider?: Provider][] = [
  ['a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g', 'h')]],
  ['a roll and an undo with no call between', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'undo', ...say('f', 'g')]],
  ['an undo after a call', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), 'undo', ...say('g', 'h')]],
  ['off and on', [...say('a', 'b', 'c', 'd'), 'off', ...say('e', 'f'), 'on', 'roll', ...say('g', 'h')]],
  [
    'a step back behind a roll, and a roll there',
    [...say('a', 'b', 'c', 'd'), 'roll', ...say('e', 'f'), { goto: 2 }, ...say('g', 'h', 'i'), 'roll', ...say('j')],
  ],
  [
    'steps back by one to four prompts, before and behind a roll',
    [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), { goto: 4 }, ...say('g'), { goto: 2 }, ...say('h', 'i'), { goto: 3 }, ...say('j')],
    CLAUDE,
  ],
  ['a fork after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g'), 'fork', ...say('h', 'i')]],
  ['a compaction after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), 'compact', ...say('g', 'h', 'i')]],
  ['a compaction right after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'compact', ...say('f', 'g')]],
  ['reads of the same files again', [...say('a', 'b', 'a', 'c', 'b', 'd', 'a'), 'roll', ...say('e', 'b', 'f')]],
  ['a step in the price that only plain Pi reaches', [...say('a', 'b', 'c', 'd'), 'roll', ...say('e', 'f', 'g', 'h')], { cost: { ...COST, tiers: [STEP] } }],
  [
    'long answers above a step that only plain Pi reaches',
    [...say('a', 'b', 'c', 'd'), 'roll', ...say('e', 'f', 'g', 'h')],
    { cost: { ...COST, tiers: [STEP] }, goesOn: 400 },
  ],
  ['a dearer model after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f'), { model: 'dear' }, ...say('g', 'h')]],
  ['a cheaper model after a roll', [{ model: 'dear' }, ...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g'), { model: 'scripted' }, ...say('h')]],
  [
    'a model that answers again after a roll by another one',
    [{ model: 'dear' }, ...say('a', 'b', 'c', 'd'), { model: 'scripted' }, ...say('e', 'f'), 'roll', ...say('g'), { model: 'dear' }, ...say('h', 'i')],
  ],
  ['a restart after a roll', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'restart', ...say('f', 'g'), 'restart', ...say('h')]],
  ['a cache of an hour', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g', 'h')], { ...CLAUDE, env: { PI_CACHE_RETENTION: 'long' } }],
  ['a call that was given up before its answer', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'abort', ...say('f', 'g', 'h')]],
  ['a call that was given up within its answer', [...say('a', 'b', 'c', 'd', 'e'), 'roll', 'abort', ...say('f', 'g', 'h')], CLAUDE],
  ['a provider that reports no tokens', [...say('a', 'b', 'c', 'd', 'e'), 'roll', ...say('f', 'g')], { isSilent: true }],
]

/** Sessions that plain Pi summarizes once or more often, and the extension seldom or never. */
const LONG: [name: string, steps: Step[], provider?: Provider][] = [
  ['fifteen prompts of six calls in a window of 200k', work(15)],
  ['the same on Claude', work(15), CLAUDE],
  ['the same with settings of the user', work(15), { compaction: { reserveTokens: 40_000, keepRecentTokens: 60_000 } }],
  ['a window of 100k with restarts', [...work(4), 'restart', ...work(3, 4), 'restart', ...work(3, 7)], { window: 100_000 }],
  ['a roll and an undo where plain Pi has compacted', [...work(6), 'roll', ...work(1, 6), 'undo', ...work(2, 7)], { window: 150_000 }],
  [
    'two models with windows of two sizes',
    [{ model: 'dear' }, ...work(4), { model: 'scripted' }, ...work(4, 4), { model: 'dear' }, ...work(2, 8)],
    { window: 100_000 },
  ],
  ['a compaction by hand behind one that only plain Pi makes', [...work(8), 'compact', ...work(4, 8)], { window: 150_000 }],
  ['a step in the price above which plain Pi compacts', work(10), { window: 120_000, cost: { ...COST, tiers: [{ ...STEP, inputTokensAbove: 110_000 }] } }],
  ['a fork where plain Pi has compacted', [...work(5), 'fork', ...work(3, 5)], { window: 100_000 }],
]

const NO_TOKENS: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

interface Outcome {
  cost: number
  /** The saving by the last point, in dollars. */
  saved: number
  /** The same by `usage`, over all branches. */
  used: number
  /** The price paid by `usage`. */
  paid: number
  /** Number of times that Pi has summarized the conversation. */
  summaries: number
  /** Tokens of the longest request that plain Pi would have sent, by the points. */
  longest: number
  /** The screen of `/context`. */
  screen: string
}

/** Takes the steps in a separate Pi. Returns the bill of the branch, and the reported saving. */
async function run(
  steps: readonly Step[],
  { cost = COST, api, env, isSilent, goesOn = 0, window = 200_000, compaction = { keepRecentTokens: 2000 } }: Provider,
  isManaged: boolean,
): Promise<Outcome> {
  const isWork = steps.some((step) => typeof step === 'object' && 'work' in step)
  let worked = 0
  const { server, home, load } = await setUp(
    (request, n) => {
      if (request.kind === 'summary') return isWork ? summary(n) : 'SUMMARY'
      if (isWork) {
        // After a summary, the prompt may not be in the request.
        const at = worked++
        return at % (READS + 1) < READS ? calls(['read', { path: `w${at}.txt` }, `call_${n}`]) : { text: `answer ${at}` }
      }
      // A hint of ours may come after what the user says.
      const said = request.messages.findLast(({ role, text }) => role === 'user' && !text.startsWith('Shortened outputs'))!.text
      const name = /read (\w)$/m.exec(said)?.[1]
      // Held open: half of it has come, or nothing at all where tokens are reported at the end.
      if (said.endsWith('wait')) return api === undefined ? { before: new Gate(), text: '' } : { parts: ['half of it', new Gate()] }
      const reply =
        request.messages.at(-1)!.role === 'user' && name !== undefined
          ? calls(['read', { path: `${name}.txt` }, `call_${n}`])
          : { text: `answer about ${said}${' and so on'.repeat(goesOn)}` }
      return isSilent === true ? { ...reply, usage: NO_TOKENS } : reply
    },
    { model: { cost }, models: [DEAR], contextWindow: window, settings: { compaction }, ...(api && { api }), ...(env && { env }) },
  )
  for (const name of 'abcdefghij') put(home, `${name}.txt`, lines(name, 500))
  if (isWork) for (let n = 0; n < (READS + 1) * steps.length; n += 1) put(home, `w${n}.txt`, lines(`w${n}`, 500))
  const start = (args: string[] = []) => startRpc({ ...load, args, extension: isManaged ? [load.extension, NAVIGATE] : [NAVIGATE] })
  let rpc = await start()
  for (const step of steps) {
    if (step !== 'restart') await take(rpc, server, step, isManaged)
    else {
      await rpc.close()
      rpc = await start(['--continue'])
    }
  }
  const { sessionFile } = await rpc.state()
  const screen = isManaged ? (await command(rpc, '/context')).join('\n') : ''
  await rpc.close()
  const branch = branchOf(readSession(sessionFile).entries)
  const point = branch.findLast((entry) => entry['customType'] === 'pi-context-manager')?.['data'] as { dollars?: number } | undefined
  let [used, paid] = [0, 0]
  for await (const charge of chargesOf(await openRecording(sessionFile), new Set())) {
    used += charge.saved
    paid += charge.cost ?? 0
  }
  const longest = Math.max(0, ...branch.map((entry) => (entry['data'] as { last?: { plain: number } } | undefined)?.last?.plain ?? 0))
  return {
    cost: billOf(branch as never).cost,
    saved: point?.dollars ?? 0,
    used,
    paid,
    summaries: branch.filter(({ type }) => type === 'compaction').length,
    longest,
    screen,
  }
}

async function take(rpc: PiRpc, server: ModelServer, step: Step, isManaged: boolean): Promise<void> {
  if (step === 'abort') {
    const [from, seen] = [rpc.mark, server.requests.length]
    await rpc.command({ type: 'prompt', message: 'wait' })
    const request = await server.request(undefined, seen)
    if (request.api === 'anthropic-messages') await rpc.waitFor('message_update', from)
    await rpc.command({ type: 'abort' })
    await rpc.waitFor('agent_settled', from)
  } else if (step === 'compact') await rpc.command({ type: 'compact' })
  else if (step === 'fork') {
    const { messages } = await rpc.command({ type: 'get_fork_messages' })
    await rpc.command({ type: 'fork', entryId: messages.at(-1).entryId })
  } else if (typeof step === 'string') {
    if (isManaged) await command(rpc, `/context ${step}`)
  } else if ('say' in step) await rpc.prompt(step.say)
  else if ('work' in step) await rpc.prompt(`work ${step.work}`)
  else if ('model' in step) await rpc.command({ type: 'set_model', provider: 'rig', modelId: step.model })
  else {
    const { sessionFile } = await rpc.state()
    const answers = branchOf(readSession(sessionFile).entries).filter(
      (entry) => entry.type === 'message' && entry['message'].role === 'assistant' && entry['message'].stopReason === 'stop',
    )
    await command(rpc, `/goto ${answers[step.goto]!.id}`)
  }
}

test.each(some(SCENARIOS, 6))('%s', async (name, steps, provider = {}) => {
  const [own, plain] = [await run(steps, provider, true), await run(steps, provider, false)]
  process.stderr.write(`${name}: $${own.cost.toFixed(4)} beside $${plain.cost.toFixed(4)}, said $${own.saved.toFixed(4)}\n`)
  expect(Math.abs(plain.cost - own.cost - own.saved)).toBeLessThan(0.01)
  // On one branch, the command says the same.
  if (!steps.some((step) => typeof step === 'object' && 'goto' in step)) expect(own.used).toBeCloseTo(own.saved, 5)
})

test.each(some(LONG, 2))('%s: the saving that is claimed is the true one within 2 %%', async (name, steps, provider = {}) => {
  const whole = { compaction: {}, ...provider }
  const [own, plain] = [await run(steps, whole, true), await run(steps, whole, false)]
  const saved = plain.cost - own.cost
  process.stderr.write(
    `${name}: $${own.cost.toFixed(4)} beside $${plain.cost.toFixed(4)} (${plain.summaries} summaries); saved $${saved.toFixed(4)}, said $${own.saved.toFixed(4)} (${((100 * own.saved) / saved - 100).toFixed(2)} %)\n`,
  )
  expect(plain.summaries).toBeGreaterThan(0)
  // If little was saved, the two bills agree.
  expect(Math.abs(own.saved - saved)).toBeLessThan(Math.max(0.02 * saved, 0.002 * plain.cost))
  expect(own.used).toBeCloseTo(own.saved, 5)
  expect(own.paid).toBeCloseTo(own.cost, 5)
  const share = Math.round((100 * Math.abs(own.saved)) / (own.cost + own.saved))
  expect(own.screen).toMatch(new RegExp(own.saved < 0 ? `Cost .* more \\(${share} %\\)` : `Saved \\$${own.saved.toFixed(2)} \\(${share} %\\)`))
  expect(own.screen).toContain(`Paid $${own.cost.toFixed(2)}, without pi-context-manager $${(own.cost + own.saved).toFixed(2)}`)
  // The requests that we report for plain Pi are never longer than the window.
  expect(own.longest).toBeLessThanOrEqual(
    Math.max(provider.window ?? 200_000, steps.some((step) => typeof step === 'object' && 'model' in step) ? DEAR.contextWindow : 0),
  )
})
