/**
 * A session that is left and resumed is sent as if it had never been left: the first request of the new process is the one
 * that the old process would have sent, byte for byte. Plain Pi does the same, so both read as much from the provider's cache.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { commonPrefix } from '../../rig/meter.ts'
import { cleanUp, startRpc, temporaryFolder } from '../../rig/pi.ts'
import { random } from '../../rig/random.ts'
import { calls } from '../../rig/reply.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { handle, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

/** Number of calls that each prompt leads to. */
const STEPS = 6

/** An agent that reads, reads again, edits, runs commands, and brings back what it has seen. Its prompts are `P1`, `P2` and so on. */
function agent(seed: number): (request: ModelRequest) => ReturnType<typeof calls> | string {
  return ({ messages }) => {
    const from = messages.findLastIndex(({ role, text }) => role === 'user' && /^P\d+$/m.test(text))
    const prompt = Number(/^P(\d+)$/m.exec(messages[from]!.text)![1])
    const step = messages.slice(from).filter(({ role }) => role === 'assistant').length
    if (step >= STEPS) return `prompt ${prompt} is done. ${'It went well. '.repeat(20)}`
    const { next } = random(seed * 1_000_003 + prompt * 101 + step)
    const id = `call_${prompt}_${step}`
    const file = `mod${Math.floor(next() * 4 + prompt / 2)}.ts`
    const dice = next()
    if (dice < 0.62) return calls(['read', { path: file }, id])
    if (dice < 0.75) return calls(['bash', { command: `cat ${file} # ${id}` }, id])
    if (dice < 0.85) return calls(['edit', { path: file, edits: [{ oldText: `${file} line 7:`, newText: `${file} line 7:` + id }] }, id])
    if (dice < 0.95 || prompt < 2) return calls(['bash', { command: `seq ${prompt}000 ${prompt}${200 + step}` }, id])
    return calls(['read', { path: `id=${handle(`call_${prompt - 1}_0`)}` }, id])
  }
}

test.each<[number, Api, number]>([
  [1, 'openai-completions', 11],
  [2, 'anthropic-messages', 11],
  [3, 'openai-completions', 11],
])('session %i, %s: left before prompt %i', async (seed, api, prompt) => {
  const root = temporaryFolder('pi-rig-')
  const [whole, left] = [await play(root), await play(root, [prompt])]
  const first = (prompt - 1) * (STEPS + 1)
  for (const [n, { prompt: expected }] of whole.slice(0, first + 1).entries()) {
    const actual = left[n]!.prompt
    const at = commonPrefix(expected, actual)
    expect({ n, at, text: actual.slice(at, at + 300) }).toEqual({ n, at, text: expected.slice(at, at + 300) })
  }
  // It has come to both kinds of what changes: pointers to results, and results that have left.
  expect(left[first]!.prompt).toContain(' are as in the result id=')
  expect(left[first]!.prompt).toContain('toolcall_ref id=')

  /** Plays prompts in a Pi; before each whose number is in `restarts`, the process ends and another one continues. */
  async function play(folder: string, restarts: readonly number[] = []): Promise<ModelRequest[]> {
    for (const part of readdirSync(folder)) rmSync(join(folder, part), { recursive: true, force: true })
    const { server, home, load } = await setUp(agent(seed), { api, root: folder })
    for (let n = 0; n < 12; n += 1) put(home, `mod${n}.ts`, lines(`mod${n}.ts`, 100))
    let rpc = await startRpc(load)
    for (let n = 1; n <= prompt; n += 1) {
      if (restarts.includes(n)) {
        await rpc.close()
        rpc = await startRpc({ ...load, args: ['--continue'] })
      }
      await rpc.prompt(`P${n}`)
    }
    await rpc.close()
    return server.requests
  }
})
