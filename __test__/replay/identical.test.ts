/** A recorded session taken in again: on any store, and however often the process ends on the way, the same bytes. */
import { afterEach, describe, expect, test } from 'vitest'
import { isCall, isSent } from '../../lib/recordings/recording.ts'
import type { Message } from '../../lib/recordings/recording.ts'
import type { ContextManager, StoreOptions } from '../../lib/index.ts'
import { Projection } from '../../lib/projection/harness.ts'
import { folder, opened, sqlite } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { entriesOf, fixture, stepsOf } from './support.ts'

afterEach(cleanUp)

const SESSIONS = ['pi-version-1.jsonl', 'pi-version-2.jsonl', 'pi-version-3.jsonl', 'claude-code.jsonl']

/** The messages of a recording as one conversation. */
async function conversation(name: string): Promise<Message[]> {
  const { steps } = await stepsOf(fixture(name))
  return entriesOf(steps).flatMap(({ message, at }) => (isSent(message) ? [{ ...message, timestamp: at }] : []))
}

/** The requests of each call, and the session's result. */
interface Outcome {
  requests: string[][]
  rolls: number
  text: string
  sets: unknown
}

/** Hands a conversation over as a harness does, call by call; `ends` says after which calls the process ends. */
async function take(messages: readonly Message[], store: StoreOptions, cwd: string, ends: (call: number) => boolean = () => false): Promise<Outcome> {
  const open = () => opened({ cwd, store, watchUnmapped: false })
  let now = 0
  let rolls = 0
  const start = (manager: ContextManager) =>
    new Projection(manager, {
      model: { contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25, cacheTtlMs: 1e12 },
      systemTokens: 1_000,
      now: () => now,
      onRoll: () => (rolls += 1),
    })
  let manager = await open()
  let projection = start(manager)
  const requests: string[][] = []
  for (const [index, message] of messages.entries()) {
    if (!isCall(message)) continue
    const known = messages.slice(0, index)
    now = Number(known.at(-1)?.['timestamp'] ?? 0)
    requests.push((await projection.transform(known)).map((one) => JSON.stringify(one)))
    if (!ends(requests.length)) continue
    const [before, sets] = [(await manager.assemble()).text, await manager.sessionSets()]
    await manager.close()
    manager = await open()
    projection = start(manager)
    expect((await manager.assemble()).text, 'the canonical view after a restart').toBe(before)
    expect(await manager.sessionSets()).toEqual(sets)
  }
  await projection.transform(messages)
  const outcome = { requests, rolls, text: (await manager.assemble()).text, sets: await manager.sessionSets() }
  await manager.close()
  return outcome
}

describe.each(SESSIONS)('%s', (name) => {
  test('gives the same bytes on a fresh store, of whatever kind', async () => {
    const [messages, cwd] = [await conversation(name), folder()]
    const first = await take(messages, { kind: 'memory' }, cwd)
    expect(first.requests.length).toBeGreaterThan(5)
    expect(await take(messages, { kind: 'memory' }, cwd)).toEqual(first)
    expect(await take(messages, sqlite(), cwd)).toEqual(first)
  })

  test('gives the same session where the process ends again and again', async () => {
    const [messages, cwd] = [await conversation(name), folder()]
    const { text, sets } = await take(messages, { kind: 'memory' }, cwd)
    const broken = await take(messages, sqlite(), cwd, (call) => call % 8 === 0)
    expect(broken.sets).toEqual(sets)
    expect(broken.text).toBe(text)
  })

  test('each request begins with the one before, but for rolls', async () => {
    const { requests, rolls } = await take(await conversation(name), { kind: 'memory' }, folder())
    let [kept, all, broken] = [0, 0, 0]
    for (const [n, request] of requests.entries()) {
      if (n === 0) continue
      const before = requests[n - 1]!
      let same = 0
      while (same < before.length && before[same] === request[same]) same += 1
      kept += before.slice(0, same).join('').length
      all += before.join('').length
      if (same < before.length) broken += 1
    }
    expect(broken).toBeLessThanOrEqual(rolls)
    process.stderr.write(`${name}: ${requests.length} calls, ${rolls} rolls, ${((kept / all) * 100).toFixed(1)} % kept\n`)
  })
})
