/**
 * Random sessions of the real Pi: whatever happens between two requests, the later one is the earlier one plus
 * something at its end, except that outputs become references, and whole again where a roll is taken back.
 */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { breaks, checkToolPairs } from '../../rig/checks.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { random } from '../../rig/random.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { Api } from '../../rig/exchange.ts'
import { command, header, isExcerpt, lines, notices, OUTPUTS_ONLY, referring, setUp, put, withoutOutputs } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))

/** Steps of one session. */
const STEPS = 30

/** Returns the agent's choices for a prompt: talk, or call tools, each call on a separate file. */
async function world(api: Api, rng: () => number): Promise<Setting & { texts: Map<string, string> }> {
  const texts = new Map<string, string>()
  let files = 0
  const setting = await setUp(
    (request, n) => {
      if (request.messages.at(-1)!.role !== 'user' || rng() < 0.3) return lines(`answer ${n}`, 1 + Math.floor(rng() * 120))
      const made = Array.from({ length: 1 + Math.floor(rng() * 4) }, (): [string, object, string] => {
        const name = `f${(files += 1)}.txt`
        const text = lines(name, 10 + Math.floor(rng() * 60))
        put(setting.home, name, text)
        texts.set(`call_${files}`, text)
        const read = rng() < 0.5
        return [read ? 'read' : 'bash', read ? { path: name } : { command: `cat ${name}` }, `call_${files}`]
      })
      return calls(...made)
    },
    { api, context: OUTPUTS_ONLY },
  )
  return { ...setting, texts }
}

test.each<[Api, number]>([
  ['openai-completions', 1],
  ['anthropic-messages', 2],
  ['openai-completions', 3],
  ['anthropic-messages', 4],
])('%s, session %i', async (api, seed) => {
  const rng = random(seed).next
  const { server, load, texts } = await world(api, rng)
  const start = (args: string[] = []): Promise<PiRpc> => startRpc({ ...load, args, extension: [load.extension, NAVIGATE] })
  const problems: string[] = []
  let rpc = await start()
  /** The number of the first request after a step to another branch: it follows no earlier one. */
  const moved = new Set<number>([0])
  for (let step = 0; step < STEPS; step += 1) {
    const dice = rng()
    if (step === 0 || dice < 0.6) await rpc.prompt(`prompt ${step}`)
    else if (dice < 0.7) await command(rpc, '/context roll')
    else if (dice < 0.74) await command(rpc, '/context undo')
    else if (dice < 0.8) {
      problems.push(...notices(rpc.events))
      await rpc.kill9()
      rpc = await start(['--continue'])
    } else if (dice < 0.86) await command(rpc, '/again')
    else {
      moved.add(server.requests.length)
      if (dice < 0.92) await rpc.command({ type: 'clone' })
      else {
        const { entries } = await rpc.command({ type: 'get_entries' })
        const users = entries.filter((entry: any) => entry.message?.role === 'user')
        await command(rpc, `/goto ${users[Math.floor(rng() * users.length)].id}`)
      }
    }
  }
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  problems.push(...notices(rpc.events))
  const usual = /^(Rolled: |This roll: |Nothing is old enough to collapse|[\d.]+k? tokens are old enough to collapse, but|Undone: |There is no roll to undo)/
  expect(problems.filter((text) => !usual.test(text))).toEqual([])

  const seen = new Set<string>()
  for (const request of server.requests) {
    checkToolPairs(request)
    for (const [id, text] of resultsById(request)) {
      const tool = /tool=(\w+)/.exec(text)?.[1] ?? ''
      if (text === `${header(id)}\n${texts.get(id)}`) seen.add(id)
      else {
        // In a roll outputs of earlier turns become references, and excerpts where they are active.
        const head = `${header(id)}\n`
        const isShort = text.startsWith(head) && isExcerpt(text.slice(head.length), texts.get(id)!)
        if (!isShort) expect(text).toMatch(referring(id, tool))
        expect(seen).toContain(id)
      }
    }
    if (moved.has(request.n)) continue
    const before = withoutOutputs(server.requests[request.n - 1]!)
    expect(withoutOutputs(request).slice(0, before.length)).toEqual(before)
  }
  // Few requests rewrite anything: most extend the one before.
  expect(breaks(server.requests).length).toBeLessThan(server.requests.length / 3 + moved.size)
})
