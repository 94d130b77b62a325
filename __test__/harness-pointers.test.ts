/** A result in which a host says that an earlier read has the same points to something: to the text, or to its reference. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { folder, opened, sqlite, write } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 400_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }
const SENTENCE =
  'File unchanged since last read. The content from the earlier Read tool_result in this conversation is still current — refer to that instead of re-reading.'
const ADDED = /It has collapsed: (toolcall_ref id=\S+ tool=read)/

const lines = (name: string): string => Array.from({ length: 60 }, (_, line) => `${name} line ${line} of a file with some words in it`).join('\n')

const read = (id: string, path: string, output: string): Step => ({ calls: [{ id, name: 'read', args: { path }, output }] })

/** Fifteen reads and a new prompt. */
const turn = (cwd: string, number: number): Step[] => [
  ...Array.from({ length: 15 }, (_, n) => read(`t${number}_${n}`, write(cwd, `f${number}_${n}.txt`, lines(`${number}.${n}`)), lines(`${number}.${n}`))),
  { text: 'done', calls: [] },
  { user: `next ${number}` },
]

test.each(shapes)('%s: the reference of a collapsed target follows the words of the host, and in a new process, too', async (shape) => {
  const [cwd, store] = [folder(), sqlite()]
  const manager = await opened({ cwd, store, shape, model: MODEL })
  const steps: Step[] = [{ user: 'go' }]
  const all = (): object[] => steps.flatMap((step) => written[shape](step, 1))
  const texts = async (): Promise<string> => JSON.stringify(await manager.transformContext(all()))

  steps.push(...turn(cwd, 0), read('again', 'f0_0.txt', SENTENCE))
  const before = await texts()
  expect(before).toContain(SENTENCE)
  expect(before).not.toMatch(ADDED)

  for (let number = 1; number < 5; number += 1) {
    for (const step of turn(cwd, number)) {
      steps.push(step)
      await texts()
    }
  }
  const after = await texts()
  expect(after).not.toContain('0.0 line 7 ')
  expect(after).toMatch(ADDED)

  // A read behind the roll points to it at once, whichever way the path is written.
  steps.push(read('late', join(cwd, 'f0_0.txt'), SENTENCE))
  expect((await texts()).split('It has collapsed: ')).toHaveLength(3)
  const last = await texts()
  expect(last).toContain(after.slice(0, -2))

  await manager.close()
  const anew = await opened({ cwd, store, shape, model: MODEL })
  expect(JSON.stringify(await anew.transformContext(all()))).toBe(last)
  const [, reference = ''] = ADDED.exec(last) ?? []
  expect(JSON.stringify(await anew.activate(/id=(\S+)/.exec(reference)?.[1] ?? ''))).toContain('0.0 line 7 ')
})

test.each(shapes)('%s: a target that the host has removed has no reference', async (shape) => {
  const cwd = folder()
  const manager = await opened({ cwd, shape, model: MODEL })
  const steps: Step[] = [{ user: 'go' }, read('again', join(cwd, 'f0_0.txt'), SENTENCE)]
  for (let number = 1; number < 5; number += 1) steps.push(...turn(cwd, number))
  expect(JSON.stringify(await manager.transformContext(steps.flatMap((step) => written[shape](step, 1))))).not.toMatch(ADDED)
})
