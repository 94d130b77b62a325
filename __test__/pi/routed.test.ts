/** The real Pi with answers of two models, chosen by a virtual model or by the user: each counts by the one that has answered. */
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { billOf } from '../../extensions/provider.ts'
import { findRuntime, isAtLeast } from '../../pi-runtime/index.mjs'
import { SOON } from '../../rig/extension.ts'
import { branchOf, cleanUp, readSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Reply } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import type { StrictOptions } from '../../rig/strict.ts'
import { command, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

const ROUTER = fileURLToPath(new URL('router.ts', import.meta.url))

const { version } = findRuntime()
/** Models that route came with 1.6.0. */
const HAS_ROUTERS = isAtLeast(version, '1.6.0')
if (!HAS_ROUTERS) process.stderr.write(`not run on Pi ${version}: virtual models, which came with 1.6.0\n`)

/** Who chooses the model for each prompt. */
type Chooser = 'router' | 'user'
const CHOOSERS: Chooser[] = HAS_ROUTERS ? ['router', 'user'] : ['user']

/** The models of easy and of hard prompts, and how the provider binds their reasoning. */
interface Models {
  easy: string
  hard: string
  strict?: StrictOptions
}

/** Thinks, and reads three files for each prompt. */
function worker({ messages, n }: ModelRequest): Reply {
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(?:easy|hard) /.test(text))
  const done = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  const thinking = `thought ${n} ${'hm '.repeat(50)}`
  return done < 3 ? { thinking, ...calls(['bash', { command: `cat f${(n + done) % 8}.txt # ${n}` }, `call_${n}`]) } : { thinking, text: `done ${n}` }
}

const cost = (input: number): object => ({ input, output: 5 * input, cacheRead: 0.1 * input, cacheWrite: 1.25 * input })

/** Holds a conversation: a word for each prompt. Returns what was sent, what it cost, and what is said of that. */
async function converse(words: readonly string[], { easy, hard, strict }: Models, by: Chooser, isManaged = true) {
  const model = (id: string, input: number) => ({ id, reasoning: true, contextWindow: 200_000, maxTokens: 8192, cost: cost(input) })
  const { server, home, load } = await setUp(worker, {
    api: 'anthropic-messages',
    model: model(easy, 1),
    models: [model(hard, 15)],
    context: SOON,
    env: { ROUTER_EASY: easy, ROUTER_HARD: hard },
    settings: { compaction: { enabled: false } },
    ...(strict === undefined ? {} : { strict }),
  })
  for (let n = 0; n < 8; n += 1) put(home, `f${n}.txt`, lines(`f${n}`, 150))
  const rpc = await startRpc({
    ...load,
    args: ['--model', by === 'router' ? 'router/auto' : `rig/${easy}`, '--thinking', 'high'],
    extension: [...(isManaged ? [load.extension] : []), ...(by === 'router' ? [ROUTER] : [])],
  })
  const whys: string[] = []
  for (const [n, word] of words.entries()) {
    if (by === 'user') await rpc.command({ type: 'set_model', provider: 'rig', modelId: word === 'hard' ? hard : easy })
    await rpc.prompt(`${word} ${n}`)
    if (isManaged) whys.push((await command(rpc, '/context why')).join('\n').replace(/\s+/g, ' '))
  }
  const { sessionFile } = await rpc.state()
  await rpc.close()
  const branch = branchOf(readSession(sessionFile).entries)
  const point = branch.findLast((entry) => entry['customType'] === 'pi-context-manager')?.['data'] as { dollars?: number } | undefined
  return { requests: server.agentRequests, cost: billOf(branch as never).cost, saved: point?.dollars ?? 0, why: whys.at(-1) }
}

const WORDS = ['easy', 'easy', 'hard', 'hard', 'easy', 'hard', 'easy', 'easy', 'easy', 'hard']

/** Number of requests in which something before the end of the last one has changed. */
const rolls = (requests: readonly ModelRequest[]): number => {
  const texts = requests.map(({ messages }) => messages.filter(({ role }) => role === 'tool').map(({ json }) => json))
  return texts.filter((one, n) => n > 0 && texts[n - 1]!.some((json, at) => one[at] !== json)).length
}

describe.each(CHOOSERS)('chosen by the %s', { timeout: 170_000 }, (by) => {
  test('the saving is that of the models that have answered', async () => {
    const models: Models = { easy: 'cheap', hard: 'dear' }
    const [own, plain] = [await converse(WORDS, models, by), await converse(WORDS, models, by, false)]
    expect(own.requests.map(({ body }) => body.model)).toEqual(WORDS.flatMap((word) => Array(4).fill(word === 'hard' ? 'dear' : 'cheap')))
    expect(rolls(own.requests)).toBeGreaterThan(0)
    process.stderr.write(`by the ${by}: $${own.cost.toFixed(4)} beside $${plain.cost.toFixed(4)}, said $${own.saved.toFixed(4)}\n`)
    // Pi leaves out what the other model has thought, whose size no plain request of this one has shown.
    expect(Math.abs(plain.cost - own.cost - own.saved)).toBeLessThan(0.025 * plain.cost)
    expect(own.why).toContain(
      by === 'router' ? 'The router (router/auto): it chose rig/dear after rig/cheap.' : 'You: the model changed from rig/cheap to rig/dear.',
    )
  })

  test('no reasoning is refused when the model that binds it answers again', async () => {
    const { requests } = await converse(WORDS, { easy: 'claude-haiku-4-5', hard: 'claude-opus-5.5', strict: { isBound: (name) => name.includes('opus') } }, by)
    expect(rolls(requests)).toBeGreaterThan(0)
    expect(requests.filter(({ verdict }) => verdict?.refusal !== undefined).map(({ n }) => n)).toEqual([])
  })
})
