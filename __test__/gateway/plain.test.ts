/**
 * The savings that the gateway reports are the bill of the same agent without it, with that agent's own compactions, less its own
 * bill.
 */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { summaryOf } from '../../lib/cli/gateway-summary.ts'
import { billsFile } from '../../lib/gateway/bills.ts'
import { senderOf } from '../../lib/gateway/identity.ts'
import { draw } from '../../lib/gateway/page/draw.ts'
import { inputCost, plainCost, summaryCost } from '../../lib/gateway/saving.ts'
import { compactionOf } from '../../lib/models/compaction.ts'
import { callCost, pricesOf } from '../../lib/models/prices.ts'
import { readName } from '../../lib/models/name.ts'
import { PlainAccount } from '../../lib/gateway/plain.ts'
import { prose } from '../../lib/ui/index.ts'
import { gatewayCharges } from '../../lib/usage/gateway.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { random } from '../../rig/random.ts'
import { lastOf } from '../../rig/request.ts'
import { WIRES } from '../../rig/wires.ts'
import type { Wire } from '../../rig/wires.ts'
import { ask, billedIn, gatewayTo, long } from './support.ts'

afterEach(cleanUp)

/** An agent: its messages in its provider's format, and its compaction. */
interface Agent {
  name: string
  model: string
  window: number
  path: string
  headers: Record<string, string>
  body(messages: object[]): object
  wire: Wire
}

const NAMES = ['Bash', 'mcp__context__activate']

const CLAUDE: Agent = {
  name: 'claude-code',
  model: 'claude-sonnet-4-5',
  window: 200_000,
  path: '/v1/messages',
  headers: { 'user-agent': 'claude-cli/2.1.331', 'x-api-key': 'sk', 'x-claude-code-session-id': 'one' },
  body: (messages) => ({
    model: 'claude-sonnet-4-5',
    max_tokens: 1000,
    stream: true,
    system: [{ type: 'text', text: 'You are a test.' }],
    tools: NAMES.map((name) => ({ name, description: name, input_schema: { type: 'object' } })),
    messages,
  }),
  wire: WIRES.anthropic,
}

const CODEX: Agent = {
  name: 'codex',
  model: 'gpt-5.5',
  window: 272_000,
  path: '/v1/responses',
  headers: { 'user-agent': 'codex_cli_rs/0.171.0', authorization: 'Bearer sk', session_id: 'one' },
  body: (input) => ({
    model: 'gpt-5.5',
    stream: true,
    instructions: 'You are a test.',
    tools: NAMES.map((name) => ({ type: 'function', name, description: name, parameters: { type: 'object' } })),
    input,
  }),
  wire: WIRES['openai-responses'],
}

const CALLS = 6

/** The request for a summary. */
const ASKED = 'Summarize the conversation.'

/** A summary of the length that the agent's have. */
function summaryBy({ name, window }: Agent, n: number): string {
  return `summary ${n} `.padEnd(4 * compactionOf(name, window).summary, 'of what was done ')
}

/** A model that knows nothing but to summarize. */
function modelOf(agent: Agent): Promise<ModelServer> {
  return startModelServer((request, n) => (lastOf(request, 'user')?.text === ASKED ? summaryBy(agent, n) : 'done'))
}

/** Runs this many prompts of six calls; `at` gives the server's or gateway's address before each prompt. Returns the bill. */
async function run(
  agent: Agent,
  server: ModelServer,
  prompts: number,
  at: (prompt: number) => Promise<string>,
): Promise<{ cost: number; longest: number; compactions: number }> {
  const { limit, keep, stays, counts } = compactionOf(agent.name, agent.window)
  const { said, called, returned, answered } = agent.wire
  const prices = pricesOf(readName(agent.model))!
  const bill = { cost: 0, longest: 0, compactions: 0 }
  let messages: object[] = []
  let used = 0
  const send = async (url: string, list: object[]): Promise<void> => {
    await ask(`${url}${agent.path}`, { headers: { 'content-type': 'application/json', ...agent.headers }, body: JSON.stringify(agent.body(list)) })
    const { input, cacheRead, cacheWrite, output } = server.requests.at(-1)!.usage!
    used = input + cacheRead + cacheWrite + output
    bill.cost += callCost(prices, { input, cacheRead, cacheWrite, output })
    bill.longest = Math.max(bill.longest, used - output)
  }
  const sizeOf = (list: object[]): number => Math.ceil(JSON.stringify(list).length / 4)
  for (let prompt = 0; prompt < prompts; prompt += 1) {
    const url = await at(prompt)
    messages.push(said(`prompt ${prompt}`))
    for (let n = 0; n < CALLS; n += 1) {
      const fresh = n === 0 ? 0 : sizeOf(messages.slice(-1))
      if (used + (counts === 'request' ? fresh : 0) > limit) {
        bill.compactions += 1
        await send(url, [...messages, said(ASKED)])
        const end = n === 0 ? messages.length - 1 : messages.length
        let kept = messages.slice(end)
        if (stays === 'newest') {
          let from = end
          while (from > 2 && sizeOf(messages.slice(from - 2, end)) < keep) from -= 2
          kept = messages.slice(Math.max(1, from))
        }
        messages = [said(summaryBy(agent, bill.compactions)), ...kept]
      }
      await send(url, messages)
      const id = `call_${prompt}_${n}`
      if (n < CALLS - 1) messages.push(called(id, `cat ${id}`), returned(id, long(id, 560)))
    }
    messages.push(answered(`answer ${prompt}`))
  }
  return bill
}

test.each<[string, Agent, number | undefined]>([
  ['Claude Code', CLAUDE, undefined],
  ['Claude Code, with a gateway that is started anew', CLAUDE, 9],
  ['Codex', CODEX, undefined],
])('%s: the saving that is claimed is the true one within 2 %%', async (name, agent, restart) => {
  const path = folder()
  const store = { kind: 'sqlite' as const, path: join(path, 'context.db') }
  const billsPath = billsFile(store)
  const [server, control] = [await modelOf(agent), await modelOf(agent)]
  const start = async (): ReturnType<typeof gatewayTo> => gatewayTo(server.url, { store, billsPath, formsPath: join(path, 'forms'), cwd: path })
  let { gateway } = await start()
  const own = await run(agent, server, 15, async (prompt) => {
    if (prompt === restart) {
      await gateway.close()
      gateway = (await start()).gateway
    }
    return gateway.url
  })
  const plain = await run(agent, control, 15, async () => control.url)
  await gateway.close()
  const calls = billedIn(billsPath)
  const prices = pricesOf(readName(agent.model))
  const claimed = calls.reduce(
    (sum, { billed, plain, summary }) =>
      sum + plainCost(plain!, billed!, prices) + (summary === undefined ? 0 : summaryCost(summary, prices)) - inputCost(billed!, prices),
    0,
  )
  const saved = plain.cost - own.cost
  process.stderr.write(
    `${name}: $${own.cost.toFixed(4)} beside $${plain.cost.toFixed(4)} (${plain.compactions} compactions, ${own.compactions} of ours); saved $${saved.toFixed(4)}, said $${claimed.toFixed(4)} (${((100 * claimed) / saved - 100).toFixed(2)} %)\n`,
  )
  expect(plain.compactions).toBeGreaterThan(0)
  expect(Math.max(...calls.map(({ plain }) => plain!.input + plain!.cacheRead + plain!.cacheWrite))).toBeLessThanOrEqual(agent.window)
  expect(Math.abs(claimed - saved)).toBeLessThan(0.02 * saved)
  const used = { saved: 0, cost: 0 }
  for await (const charge of gatewayCharges(billsPath)) {
    used.saved += charge.saved
    used.cost += charge.cost!
  }
  expect(used.saved).toBeCloseTo(claimed, 6)
  expect(used.cost).toBeCloseTo(own.cost, 6)
  if (restart !== undefined) return
  // The summary and the page say the same, to the cent, as the server has counted it.
  const [without, share] = [own.cost + claimed, Math.round((100 * claimed) / (own.cost + claimed))]
  const line = `saved $${claimed.toFixed(2)} (${share} %): paid $${own.cost.toFixed(2)}, without pi-context-manager $${without.toFixed(2)} (estimated)`
  expect(summaryOf(gateway.ledger)[0]).toContain(line)
  expect(draw(gateway.ledger.sessions, undefined, undefined).regions['totals']).toContain(prose(line))
})

/** A conversation of calls with outputs of random sizes; we have hidden a random share of them so far. */
test.each([1, 2, 3, 4, 5, 6])('random conversations, seed %i: no request without us exceeds the window, and every count adds up', (seed) => {
  const { below, next, pick } = random(seed)
  const agent = pick(['claude-code', 'codex', 'opencode', 'gemini-cli', 'pi', 'agent'])
  const rule = compactionOf(agent, pick([50_000, 200_000, 272_000]))
  const account = new PlainAccount()
  let messages: object[] = []
  let [hidden, before, summaries] = [0, 0, 0]
  for (let call = 0; call < 200; call += 1) {
    // Now and then the host itself compacts, or changes something early.
    if (next() < 0.01) [messages, hidden] = [[], 0]
    else if (next() < 0.02 && messages.length > 0) messages[0] = { role: 'user', content: `changed ${call}` }
    messages.push(
      { role: 'user', content: `prompt ${call}` },
      { role: 'assistant', content: [{ type: 'tool_use', id: `c${call}` }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${call}`, content: 'x'.repeat(below(20_000)) }] },
    )
    const plainBytes = Buffer.byteLength(JSON.stringify(messages)) + 8000
    const hasRolled = next() < 0.1
    if (hasRolled) hidden = Math.floor(0.9 * plainBytes)
    const sentBytes = Math.min(plainBytes - hidden, 4 * rule.window)
    const own = Math.ceil(sentBytes / 4)
    const cacheRead = next() < 0.1 ? 0 : hasRolled ? Math.min(2000, own) : Math.min(before, own)
    const usage = { input: 0, cacheRead, cacheWrite: own - cacheRead, output: below(1000) }
    const at = 60_000 * call
    const { plain, summary } = account.next(
      {
        messages: [...messages],
        systemTokens: 2000,
        model: 'm',
        plainBytes,
        sentBytes,
        isEdited: hidden > 0,
        hasRolled,
        ofHour: next() < 0.5 ? 0 : 1,
        at,
        lifetimeMs: 300_000,
        reach: { kind: 'prefix', lookback: 0 },
        isMarked: false,
      },
      usage,
      rule,
    )
    before = own
    for (const tokens of [...Object.values(plain), ...Object.values(summary ?? {})]) expect(tokens).toBeGreaterThanOrEqual(0)
    expect(plain.input + plain.cacheRead + plain.cacheWrite).toBeLessThanOrEqual(rule.window)
    if (summary !== undefined) {
      summaries += 1
      expect(summary.input + summary.cacheRead + summary.cacheWrite).toBeLessThanOrEqual(rule.window)
    }
    // Behind the limit, the host has compacted.
    if (hidden > 0 && rule.counts === 'request') expect(plain.input + plain.cacheRead + plain.cacheWrite).toBeLessThanOrEqual(Math.max(rule.limit, own))
  }
  expect(summaries).toBeGreaterThan(0)
})

test.each([
  ['context-1m-2025-08-07', true],
  ['oauth-2025-04-20,context-1m-2025-08-07', true],
  ['oauth-2025-04-20', undefined],
  ['', undefined],
])('a client that says %j asks for the long window: %s', (beta, isLong) => {
  expect(senderOf({ 'user-agent': 'claude-cli/2.1.331', 'anthropic-beta': beta, 'x-claude-code-session-id': 's' }, { body: {} }).isLong).toBe(isLong)
})
