/**
 * The gateway's notes about its bills, without texts of its clients, and the comparison of held-out sessions with the others in
 * `usage`.
 */
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { AnswerReader } from '../../lib/gateway/answer.ts'
import { billsFile, hostSession } from '../../lib/gateway/bills.ts'
import { Holdout } from '../../lib/gateway/holdout.ts'
import { inputCost, plainCost } from '../../lib/gateway/saving.ts'
import { pricesWith } from '../../lib/models/index.ts'
import { folder } from '../core/setup.ts'
import { cli } from '../replay/support.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { WIRES } from '../../rig/wires.ts'
import { ask, AnthropicLoop, billedIn, gatewayTo, JSON_TYPE, long, startProcess, upstream } from './support.ts'

afterEach(cleanUp)

test.each([
  [1, 0],
  [0.999, 1],
])('a holdout of %d and a conversation whose host names no session: %d rolls at least', async (holdout, least) => {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url, { holdout })
  const { path, body, called, returned, said } = WIRES.gemini
  const messages: object[] = []
  for (let n = 0; n < 24; n += 1) {
    if (n % 4 === 0) messages.push(said(`prompt ${n}`))
    const raw = JSON.stringify(body(messages))
    expect((await ask(`${new URL(gateway.url).origin}${path}`, { headers: JSON_TYPE, body: raw })).status).toBe(200)
    if (holdout === 1) expect(server.requests.at(-1)!.raw.toString('utf8')).toBe(raw)
    messages.push(called(`c${n}`, `cat n${n}`), returned(`c${n}`, long(`n${n}`)))
  }
  expect(gateway.ledger.sessions.flatMap(({ rolls }) => rolls).length).toBeGreaterThanOrEqual(least)
  expect(gateway.ledger.sessions.map(({ isHeldOut }) => isHeldOut)).toEqual([holdout === 1])
})

/** A gateway that notes its bills beside a store, and the environment of the commands that read them. */
async function billing(holdout?: number) {
  const server = await startModelServer(() => 'ok')
  const path = folder()
  const store = { kind: 'sqlite', path: join(path, 'context.db') } as const
  const billsPath = billsFile(store)
  const { gateway } = await gatewayTo(server.url, { store, billsPath, ...(holdout !== undefined && { holdout, cwd: path }) })
  return { gateway, path, store: store.path, billsPath, env: { PI_CODING_AGENT_DIR: join(path, 'no-pi'), XDG_DATA_HOME: path } }
}

test('held-out sessions are compared with the others, on their bills, with an interval', async () => {
  const { gateway, store, billsPath, env } = await billing(0.5)
  const holdout = new Holdout(0.5)
  const names = Array.from({ length: 40 }, (_, n) => `s${n}`)
  const isHeld = (name: string): boolean => holdout.has(`claude-code:${name}`)
  const chosen = [...names.filter(isHeld).slice(0, 3), ...names.filter((name) => !isHeld(name)).slice(0, 3)]
  for (const [at, name] of chosen.entries()) {
    const loop = new AnthropicLoop(gateway, name)
    for (let n = 0; n < 24 + at; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`${name} n${n}`))
  }
  await gateway.close()
  expect(statSync(billsPath).mode & 0o777).toBe(0o600)
  expect(readFileSync(billsPath, 'utf8')).not.toContain('line 3')
  // A line that a killed gateway has left half written.
  appendFileSync(billsPath, '{"at":1,"sess')

  const { code, stdout, stderr } = await cli(['usage', '--store', store, '--by', 'session', '--json'], env)
  expect([code, stderr]).toEqual([0, "1 line of the gateway's notes can't be read; what its call cost is missing\n"])
  const { rows, total, holdout: comparisons, sessionsWithoutBill } = JSON.parse(stdout)
  const [compared] = comparisons
  expect(rows.length).toBe(6)
  expect(total.calls).toBe([0, 1, 2, 3, 4, 5].reduce((sum, at) => sum + 24 + at, 0))
  expect(total.saved).toBeGreaterThan(0)
  expect(sessionsWithoutBill).toBe(0)
  expect(comparisons).toEqual([
    expect.objectContaining({ unit: 'dollars', plain: expect.objectContaining({ sessions: 3 }), managed: expect.objectContaining({ sessions: 3 }) }),
  ])
  expect(compared.ratio).toBeLessThan(1)
  const [low, high] = compared.interval
  expect(low).toBeLessThanOrEqual(compared.ratio)
  expect(high).toBeGreaterThanOrEqual(compared.ratio)
  const again = await cli(['usage', '--store', store, '--json'], env)
  expect(JSON.parse(again.stdout).holdout).toEqual(comparisons)
  expect((await cli(['usage', '--store', store], env)).stdout).toMatch(
    /left plain +\$.* a call, 3 sessions\n.*\nA call cost \d+ % of a plain one \(95 % interval: \d+ % to \d+ %\)/,
  )
})

test('the bills beside a store count where all sessions were held out, so that no store was made', async () => {
  const { gateway, store, env } = await billing(1)
  await new AnthropicLoop(gateway).prompt('start')
  await gateway.close()
  const { code, stdout } = await cli(['usage', '--store', store, '--json'], env)
  expect([code, (JSON.parse(stdout) as { total: { calls: number } }).total.calls]).toEqual([0, 1])
})

test('an agent that names no folder is not counted to the folder of the gateway', async () => {
  const { gateway, path, store, billsPath, env } = await billing()
  const told = new AnthropicLoop(gateway, 'told')
  told.messages.push({ role: 'user', content: `Working directory: ${path}` })
  for (const loop of [told, new AnthropicLoop(gateway, 'untold')])
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  await gateway.close()
  expect(new Set(billedIn(billsPath).map(({ folder }) => folder))).toEqual(new Set([path, '']))
  const callsIn = async (...of: string[]): Promise<number> => {
    const { total } = JSON.parse((await cli(['usage', '--store', store, '--json', ...of], env)).stdout) as { total: { calls: number } }
    return total.calls
  }
  expect([await callsIn(), await callsIn('--project', path), await callsIn('--project', process.cwd())]).toEqual([6, 3, 0])
  expect((await cli(['usage', '--store', store, '--by', 'project'], env)).stdout).toMatch(/^not known +1 /m)
  const listed = (await cli(['sessions', '--store', store, '--json'], env)).stdout
  expect(listed).not.toContain(process.cwd())
})

test('figures that can not be true are told and count as 0, and an answer without figures has no bill', async () => {
  const sound = { input_tokens: 10, output_tokens: 5 }
  const figures: unknown[] = [
    { input_tokens: -5, output_tokens: 3 },
    { input_tokens: '12', output_tokens: 'x' },
    { input_tokens: 1e30, output_tokens: 1e30 },
    ...[sound, sound],
    ...[{}, null, { input_tokens: null }, 'none'],
  ]
  let asked = 0
  const server = await upstream((_, response) => {
    const usage = figures[asked]
    asked += 1
    response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ id: `m${asked}`, type: 'message', role: 'assistant', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn', usage }))
  })
  const path = folder()
  const store = join(path, 'context.db')
  const billsPath = billsFile({ kind: 'sqlite', path: store })
  const { gateway, warnings } = await gatewayTo(server.url, { store: { kind: 'sqlite', path: store }, billsPath, cwd: path })
  const loop = new AnthropicLoop(gateway)
  for (const at of figures.keys()) await loop.prompt(`prompt ${at}`)
  await gateway.close()
  expect(warnings.filter((one) => one.includes('token counts'))).toHaveLength(1)
  const [sums] = gateway.ledger.sessions
  expect([sums!.billed, sums!.plain]).toEqual(Array.from({ length: 2 }, () => ({ input: 20, cacheRead: 0, cacheWrite: 0, output: 13 })))
  // Bills of an older gateway.
  const old = { input: 1e30, cacheRead: 0, cacheWrite: 0, output: 7 }
  appendFileSync(billsPath, `${JSON.stringify({ ...billedIn(billsPath)[0], billed: old, plain: { ...old, input: 2e30 }, isDoubtful: undefined })}\n`)

  const { stdout, stderr } = await cli(['usage', '--store', store, '--json'], { PI_CODING_AGENT_DIR: join(path, 'no-pi'), XDG_DATA_HOME: path })
  expect(stderr).toBe('')
  const { total } = JSON.parse(stdout) as { total: Record<string, unknown> }
  expect(total).toMatchObject({ calls: 10, unbilledCalls: 4, doubtfulCalls: 4, saved: 0, tokens: { input: 20, cacheRead: 0, cacheWrite: 0, output: 20 } })
})

test('credentials reach the provider and stand in no file', async () => {
  const server = await startModelServer(() => 'ok')
  const home = folder()
  const gateway = await startProcess(home, server.url, { XDG_DATA_HOME: home })
  const loop = new AnthropicLoop(gateway)
  for (let n = 0; n < 40; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 300))
  expect(server.requests.at(-1)!.headers['x-api-key']).toBe('sk-secret')
  const ended = once(gateway.child, 'exit')
  gateway.child.kill('SIGTERM')
  await ended
  const { code } = await cli(['export', join(home, 'export.jsonl'), '--store', join(home, 'context.db')], { XDG_DATA_HOME: home })
  expect(code).toBe(0)
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const texts = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
  // The text is in the plain export.
  expect(texts.some((text) => text.includes('n29 line 3 of an output'))).toBe(true)
  expect(files.filter((_, at) => texts[at]!.includes('sk-secret')).map(({ name }) => name)).toEqual([])
})

test.each([
  ['claude-code:5f', 'claude-code:5f'],
  ['claude-code:5f:agent-1', 'claude-code:5f'],
  ['claude-code:5f~2', 'claude-code:5f'],
  ['codex:', 'codex:'],
])('%s belongs to %s', (id, own) => {
  expect(hostSession(id)).toBe(own)
})

test.each([
  ['a step that only the plain prompt passes', 'gpt-5.5', 300_000, 200_000, (2 * 5 * 300_000 - 5 * 200_000 + (45 - 30) * 1000) / 1e6],
  ['one that both pass', 'gpt-5.5', 400_000, 300_000, (2 * 5 * 100_000) / 1e6],
  ['a model without steps', 'claude-opus-5-5', 300_000, 200_000, (4 * 100_000) / 1e6],
  ['a model that is not known', 'acme-1', 300_000, 200_000, 0.1],
])('%s: the saving, with the higher price of the answer', (_, model, plain, billed, saved) => {
  const tokens = (input: number) => ({ input, cacheRead: 0, cacheWrite: 0, output: 1000 })
  expect(plainCost(tokens(plain), tokens(billed), pricesWith(model)) - inputCost(tokens(billed), pricesWith(model))).toBeCloseTo(saved, 9)
})

test.each([
  ['an hour', { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1000 }, 1000, 2],
  ['five minutes', { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 0 }, undefined, 1.25],
  ['both', { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 }, 600, 1.7],
  ['a split that says less', { ephemeral_1h_input_tokens: 600 }, 600, 1.7],
  ['no split', undefined, undefined, 1.25],
  ['a damaged split', { ephemeral_1h_input_tokens: -600 }, undefined, 1.25],
])('written for %s: a token has the price of its lifetime', (_, split, hour, write) => {
  const usage = { input_tokens: 10, cache_creation_input_tokens: 1000, cache_read_input_tokens: 0, cache_creation: split, output_tokens: 1 }
  const reader = new AnswerReader('messages')
  reader.write(
    Buffer.from(
      `data: ${JSON.stringify({ type: 'message_start', message: { usage } })}\n\ndata: ${JSON.stringify({ type: 'message_delta', usage: { output_tokens: 7 } })}\n\n`,
    ),
  )
  const billed = reader.end().usage!
  expect(billed).toEqual({ input: 10, cacheRead: 0, cacheWrite: 1000, output: 7, ...(hour !== undefined && { cacheWriteHour: hour }) })
  expect(inputCost(billed, pricesWith('claude-opus-5-5'))).toBeCloseTo((4 * (10 + write * 1000)) / 1e6, 12)
})
