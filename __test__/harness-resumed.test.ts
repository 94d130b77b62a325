/**
 * A host that starts anew and has only its own messages: the first request of the new process is the one that the old process
 * would have sent, byte for byte, so that the provider still has it cached.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import { FILESYSTEM, folder, write } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Call, Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { commonPrefix } from '../rig/meter.ts'
import { random } from '../rig/random.ts'
import { isWhole, some } from './rows.ts'
import { lines as text, MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

/** The steps of one conversation. */
const STEPS = 44

/** The events of a step: the agent's messages, and the text of a file before it. */
interface Happening {
  step: Step
  made?: { file: string; text: string }
}

/** A conversation with reads, commands, long outputs and arguments, and files that others change in between. */
function conversation(seed: number): Happening[] {
  const { next, below, pick } = random(seed)
  const files = new Map(Array.from({ length: 4 }, (_, n) => [`f${n}.ts`, text(`f${n}`, 40 + below(80))]))
  const all: Happening[] = [...files].map(([file, content]) => ({ step: { user: `see ${file}` }, made: { file, text: content } }))
  for (let n = all.length; n < STEPS; n += 1) {
    if (next() < 0.25) {
      const file = pick([...files.keys()])
      const made = next() < 0.4 ? { file, text: `${files.get(file)}\nchanged before ${n}` } : undefined
      if (made !== undefined) files.set(file, made.text)
      all.push({ step: { user: `prompt ${n} ${next() < 0.2 ? text('said', 40) : ''}` }, ...(made && { made }) })
      continue
    }
    const calls = Array.from({ length: 1 + below(2) }, (_, place): Call => {
      const id = `call_${n}_${place}`
      const file = pick([...files.keys()])
      if (next() < 0.5) return { id, name: 'read', args: { path: file }, output: files.get(file) as string }
      if (next() < 0.3) return { id, name: 'write', args: { path: `made${n}.txt`, content: text(`argument ${n}`, 30) }, output: 'written' }
      return { id, name: 'bash', args: { command: `run ${id}` }, output: text(id, pick([1, 10, 60, 900])) }
    })
    all.push({ step: { calls, ...(next() < 0.3 ? { text: text(`answer ${n}`, 12) } : {}) } })
  }
  return all
}

/** The requests of one conversation: each request, and the first one of a process that started anew before each of some steps. */
interface Played {
  sent: string[]
  again: Map<number, string>
  rolls: number
}

/** Plays a conversation. Before each step in `restarts`, another process continues it on a copy of the store, for one request. */
async function play(shape: (typeof shapes)[number], cwd: string, all: readonly Happening[], restarts: readonly number[]): Promise<Played> {
  const played: Played = { sent: [], again: new Map(), rolls: 0 }
  let now = Date.now()
  const open = (place: string) =>
    ContextManager.open({
      sessionId: 's',
      cwd,
      store: { kind: 'sqlite', path: join(place, 'context.db'), durability: 'process' },
      filesystemId: FILESYSTEM,
      watch: false,
      stay: SOON,
    })
  const projected = (manager: ContextManager, onRoll: () => void): Projection =>
    new Projection(manager, {
      shape,
      model: MODEL,
      shortens: true,
      systemTokens: 3000,
      now: () => now,
      onRoll,
      onWarning: (warning) => expect.unreachable(warning),
    })
  const request = async (manager: ContextManager, projection: Projection, messages: object[]): Promise<string> => {
    await manager.reconcile()
    const form = await projection.transform(messages)
    // Times are those of this run.
    return form.map((one) => JSON.stringify(one).replaceAll(/("?timestamp"?:)\d+/g, '$1')).join('\n')
  }
  const place = folder()
  const manager = await open(place)
  const projection = projected(manager, () => (played.rolls += 1))
  const messages: object[] = []
  try {
    for (const [n, { step, made }] of all.entries()) {
      now += 1000
      const copied = restarts.includes(n) ? folder() : undefined
      if (copied !== undefined) {
        await manager.flush()
        cpSync(place, copied, { recursive: true })
      }
      if (made !== undefined) write(cwd, made.file, made.text)
      if ('calls' in step) for (const { name, args } of step.calls) if (name === 'write') write(cwd, args['path'] as string, args['content'] as string)
      messages.push(...written[shape](step, now))
      played.sent.push(await request(manager, projection, messages))
      if (copied === undefined) continue
      const other = await open(copied)
      try {
        played.again.set(
          n,
          await request(
            other,
            projected(other, () => {}),
            messages,
          ),
        )
      } finally {
        await other.close()
      }
    }
    return played
  } finally {
    await manager.close()
  }
}

describe.each(some(shapes, 2))('%s', (shape) => {
  test.each(some([1, 2], 1))('conversation %i', async (seed) => {
    const all = conversation(seed)
    const restarts: number[] = []
    for (let at = 5 + seed; at < STEPS; at += isWhole ? 6 : 18) restarts.push(at)
    const { sent, again, rolls } = await play(shape, folder(), all, restarts)
    expect(rolls).toBeGreaterThan(0)
    expect(sent.at(-1)).toContain('stale id=')
    for (const [restart, actual] of again) {
      const [before, expected] = [sent[restart - 1]!, sent[restart]!]
      // A roll may be due in the old process, and not yet in the new one.
      if (actual === expected || actual.startsWith(`${before}\n`)) continue
      const at = commonPrefix(before, actual)
      expect({ restart, at, text: actual.slice(Math.max(0, at - 100), at + 300) }).toEqual({ restart, at, text: before.slice(Math.max(0, at - 100), at + 300) })
    }
  })
})
