/** OpenCode's real binary with our plugin, on a provider that binds its reasoning. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import { sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { SOON } from '../../rig/extension.ts'
import { fateOf } from '../../rig/fate.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { BOUND } from './models.ts'
import type { SignedFormat } from './models.ts'
import { binary, OpenCode, PLUGIN } from './opencode.ts'
import { output } from './script.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

const CALLS = 4
/** Those of the figures in docs/reasoning.md, or enough for a roll. */
const TURNS = process.env['CONTEXT_FIGURES'] === undefined ? 10 : 20
/** One turn so long that changes don't wait for its end where the provider drops, if a missed use weighs little. */
const LONG = { turns: 1, calls: 110, stay: { ...SOON, weight: 0.1 } }
const isPrompt = (text: string) => text.startsWith('work ')

/** Thinks and prints one file after the other, `most` of them for each prompt. Titles are answered. */
const thoughtful =
  (most: number) =>
  (request: ModelRequest): Answer => {
    const { messages, n, tools } = request
    if (tools.length === 0) return 'a title'
    const at = messages.findLastIndex(({ role, text }) => role === 'user' && isPrompt(text))
    const done = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
    const thinking = `thought ${n} ${'hm '.repeat(100)}`
    if (done >= most) return { thinking, text: `done ${n}` }
    return { thinking, ...calls(['bash', { command: `cat n${done % CALLS}.txt # ${n}`, description: 'prints a file' }, `call_${n}`]) }
  }

const NPM: Record<SignedFormat, string> = { 'anthropic-messages': '@ai-sdk/anthropic', 'openai-responses': '@ai-sdk/openai' }

describe.skipIf(binary === undefined)('opencode', { timeout: 400_000 }, () => {
  /** One session. `told`: what the user says about the model's binding. */
  async function session(
    format: SignedFormat,
    told?: 'none',
    { turns, calls: most, stay } = { turns: TURNS, calls: CALLS, stay: SOON as typeof LONG.stay | typeof SOON },
  ) {
    const server = await startModelServer(thoughtful(most), {})
    const host = new OpenCode(BOUND[format], NPM[format])
    for (let n = 0; n < CALLS; n += 1) writeFileSync(join(host.cwd, `n${n}.txt`), output(`n${n}`))
    const store = sqlite()
    await host.start(server, [[PLUGIN, { store, stay, ...(told === undefined ? {} : { model: { binding: told } }) }]])
    for (let turn = 0; turn < turns; turn += 1) await host.prompt(`work ${turn}`)
    server.check()
    const fate = fateOf(
      server.requests.filter(({ tools }) => tools.length > 0),
      isPrompt,
    )
    await host.kill9()
    const manager = await ContextManager.open({ sessionId: `opencode:${host.sessionId}`, cwd: host.cwd, store, watch: false })
    onCleanUp(() => manager.close())
    const rolls = (await manager.receipts()).length
    const file = process.env['CONTEXT_FIGURES']
    if (file !== undefined) appendFileSync(file, `${JSON.stringify({ host: 'opencode', format, told, ...fate, rolls })}\n`)
    return { ...fate, rolls }
  }

  test.each(some(Object.keys(NPM) as SignedFormat[], 1))('%s: nothing_is_refused_and_running_turns_lose_nothing', async (format) => {
    const found = await session(format)
    expect(found).toMatchObject({ refused: 0, lostRunning: 0 })
    expect(found.blocks).toBeGreaterThan(TURNS)
    expect(found.rolls).toBeGreaterThan(0)
  })

  // OpenCode asks Anthropic for drops by itself (`thinking.blockBinding` of its AI SDK).
  test.each(some(Object.keys(NPM) as SignedFormat[], 1, 1))('%s: reasoning_of_running_turns_is_lost_if_it_is_told_nothing', async (format) => {
    const found = await session(format, 'none')
    expect(found.refused).toBe(0)
    expect(found.lostRunning).toBeGreaterThan(0)
  })

  test('anthropic-messages: a_long_turn_has_rolls_because_opencode_asks_for_drops', async () => {
    const found = await session('anthropic-messages', undefined, LONG)
    expect(found.refused).toBe(0)
    expect(found.rolls).toBeGreaterThan(0)
  })
})
