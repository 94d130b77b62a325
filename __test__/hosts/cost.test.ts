/** The cost of a session through each host, beside the same session through Pi with its extension. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { folder, FILESYSTEM } from '../core/setup.ts'
import { SOON, withExtension } from '../../rig/extension.ts'
import { commonPrefix, estimateTokens } from '../../rig/meter.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, onCleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { drivers } from './drivers.ts'
import { binary, OpenCode, PLUGIN } from './opencode.ts'
import { obedient, output } from './script.ts'

afterEach(cleanUp)

const PRICES = { input: 1, cacheRead: 0.1, cacheWrite: 1.25 }
const ROUNDS = Array.from({ length: 16 }, (_, n) => n)
const PROMPTS = ROUNDS.map((n) => `show n${n} m${n} k${n}`)
const NAMES = ROUNDS.flatMap((n) => [`n${n}`, `m${n}`, `k${n}`])

/** The model of the conformance suite, for agents that have a shell. */
function inShell(request: ModelRequest): Answer {
  if (request.tools.length === 0) return 'a title'
  const answer = obedient(request)
  if (typeof answer === 'string') return answer
  return calls(...answer.parts!.map((part): [string, object] => ['bash', { command: `cat ${(part as any).call.args.name}.txt`, description: 'shows a text' }]))
}

/** The line that Pi's extension puts before an output. */
const HEADER = /^id=[0-9a-f]{8,}\n/

/**
 * Returns the cost of the conversations of a session's requests, in fresh input tokens: the part that a request shares with the one
 * before is read from the cache, the rest is written to it. Prompts, answers and outputs count, in whatever words each host wraps
 * them. System prompts and tools do not, which are another's in each host, nor does the line that Pi's extension puts before each
 * output: a host's own messages need none.
 */
function costOf(server: ModelServer): { cost: number; requests: number } {
  const requests = server.requests.filter(({ tools }) => tools.length > 0)
  let [cost, before] = [0, '']
  for (const { messages } of requests) {
    const said = messages.filter(({ role }) => role !== 'system')
    const prompt = said.map(({ text, results }) => `${results.length > 0 ? results.map((one) => one.text.replace(HEADER, '')).join('\n') : text}\n`).join('')
    const cached = commonPrefix(before, prompt)
    cost += estimateTokens(prompt.slice(0, cached)) * PRICES.cacheRead + estimateTokens(prompt.slice(cached)) * PRICES.cacheWrite
    before = prompt
  }
  return { cost, requests: requests.length }
}

async function throughPi(isAlone: boolean) {
  const server = await startModelServer(inShell)
  const home = createPiHome({ server, model: { cost: { ...PRICES, output: 1 } } })
  for (const name of NAMES) writeFileSync(join(home.cwd, `${name}.txt`), output(name))
  const pi = await startRpc({ home, ...(isAlone ? {} : withExtension(join(home.root, 'store', 'context.db'), SOON)) })
  for (const prompt of PROMPTS) await pi.prompt(prompt)
  await pi.close()
  return costOf(server)
}

async function throughOpenCode() {
  const server = await startModelServer(inShell)
  const host = new OpenCode()
  for (const name of NAMES) writeFileSync(join(host.cwd, `${name}.txt`), output(name))
  await host.start(server, [[PLUGIN, { stay: SOON }]])
  for (const prompt of PROMPTS) await host.prompt(prompt)
  return costOf(server)
}

async function through(name: string) {
  const server = await startModelServer(inShell)
  const context = {
    sessionId: 's',
    cwd: folder(),
    store: { kind: 'memory' as const },
    filesystemId: FILESYSTEM,
    watch: false,
    shortens: true,
    stay: SOON,
    model: { name: 'scripted', contextWindow: 200_000, ...PRICES },
  }
  const driver = await drivers[name]!({ url: server.baseUrl('openai-completions'), context, show: output, isShell: true })
  onCleanUp(() => driver.context?.close())
  for (const prompt of PROMPTS) await driver.prompt(prompt)
  return costOf(server)
}

test('a session through each host costs the same as through Pi, within 2 %', { timeout: 600_000 }, async () => {
  const [alone, pi] = [await throughPi(true), await throughPi(false)]
  expect(pi.requests).toBe(alone.requests)
  const found: Record<string, number> = { 'Pi without us': alone.cost / pi.cost }
  const hosts = [
    ...Object.keys(drivers).map((name) => [name, () => through(name)] as const),
    ...(binary === undefined ? [] : [['opencode', throughOpenCode] as const]),
  ]
  for (const [name, run] of hosts) {
    const { cost, requests } = await run()
    expect(requests, name).toBe(pi.requests)
    found[name] = cost / pi.cost
  }
  process.stderr.write(`cost beside Pi with its extension: ${JSON.stringify(found)}\n`)
  expect(found['Pi without us']).toBeGreaterThan(1.02)
  for (const [name] of hosts) expect(Math.abs(found[name]! - 1), name).toBeLessThan(0.02)
})
