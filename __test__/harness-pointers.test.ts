/** A result in which a host says that an earlier read has the same points to something: to the text, or to its reference. */
import { symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { folder, opened, sqlite, write } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { some } from './rows.ts'

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

/** The last request of a conversation with reads of one file, the last of which is the pointer, and turns that let them collapse. */
async function pointed(shape: (typeof shapes)[number], cwd: string, reads: readonly Step[]): Promise<string> {
  const manager = await opened({ cwd, shape, model: MODEL })
  const steps: Step[] = [{ user: 'go' }, ...reads]
  let sent: object[] = []
  for (let number = 1; number < 5; number += 1) {
    for (const step of turn(cwd, number)) {
      steps.push(step)
      sent = await manager.transformContext(steps.flatMap((one) => written[shape](one, 1)))
    }
  }
  return sent.map((message) => JSON.stringify(message)).join('\n')
}

const part = (id: string, path: string, first: number, output: string): Step => ({
  calls: [{ id, name: 'read', args: { path, offset: first, limit: 30 }, output }],
})

test.each(some(shapes, 2))('%s: the reference is that of the same part of the file', async (shape) => {
  const cwd = folder()
  const all = lines('0.0').split('\n')
  const path = write(cwd, 'f0_0.txt', all.join('\n'))
  const [first, second] = [all.slice(0, 30).join('\n'), all.slice(30).join('\n')]
  const text = await pointed(shape, cwd, [part('a', path, 1, first), part('b', path, 31, second), part('c', path, 1, SENTENCE)])
  expect(text).toMatch(/It has collapsed: toolcall_ref id=\S+ tool=read status=ok -> lines 1-30/)
  const whole = await pointed(shape, cwd, [read('a', path, all.join('\n')), part('b', path, 31, second), part('c', path, 1, SENTENCE)])
  expect(whole).toMatch(/It has collapsed: toolcall_ref id=\S+ tool=read status=ok -> lines 1-60/)
  const other = await pointed(shape, cwd, [part('b', path, 31, second), part('c', path, 1, SENTENCE)])
  expect(other).not.toMatch(ADDED)
})

test.each<[string, (path: string, cwd: string) => string]>([
  ['through a link', (path, cwd) => (symlinkSync(path, join(cwd, 'link.txt')), 'link.txt')],
  ['with dots', (path) => path.replace('f0_0', 'x/../f0_0')],
  ["from the user's folder", (path) => `~/${relative(homedir(), path)}`],
])('the file may be named %s', async (_name, renamed) => {
  const cwd = folder()
  const path = write(cwd, 'f0_0.txt', lines('0.0'))
  const text = await pointed('anthropic', cwd, [read('a', path, lines('0.0')), read('b', renamed(path, cwd), SENTENCE)])
  expect(text).toMatch(ADDED)
})

test('a failed read in between shows nothing, also where the format has no field for that', async () => {
  const cwd = folder()
  const path = write(cwd, 'f0_0.txt', lines('0.0'))
  const text = await pointed('openai-chat', cwd, [
    read('a', path, lines('0.0')),
    read('b', path, 'Error: EACCES: permission denied'),
    read('c', path, SENTENCE),
  ])
  expect(text).toMatch(/It has collapsed: toolcall_ref id=\S+ tool=read status=ok -> lines 1-60/)
})

test.each(shapes)('%s: a host that keeps what was sent gets the same bytes in a new process', async (shape) => {
  const [cwd, store] = [folder(), sqlite()]
  const path = write(cwd, 'f0_0.txt', lines('0.0'))
  const open = () => opened({ cwd, store, shape, model: MODEL })
  let manager = await open()
  let sent: object[] = []
  for (const step of [{ user: 'go' }, read('a', path, lines('0.0')), read('b', path, SENTENCE), ...[1, 2, 3, 4].flatMap((number) => turn(cwd, number))])
    sent = await manager.transformContext([...sent, ...written[shape](step, 1)])
  const last = JSON.stringify(sent)
  expect(last).toMatch(ADDED)
  await manager.close()
  manager = await open()
  expect(JSON.stringify(await manager.transformContext(structuredClone(sent)))).toBe(last)
  expect(await manager.search('unchanged since last read')).toEqual([])
  const next = JSON.stringify(await manager.transformContext([...structuredClone(sent), ...written[shape](read('late', path, SENTENCE), 1)]))
  expect(next.split('It has collapsed: ')).toHaveLength(3)
})

test.each(
  some(
    shapes.filter((shape) => shape !== 'gemini'),
    2,
  ),
)('%s: a target that has become a line is named by its object, whatever call has its ID, too', async (shape) => {
  const cwd = folder()
  const [a, b] = ['a', 'b'].map((name) => write(cwd, `${name}.txt`, lines(name))) as [string, string]
  const manager = await opened({ cwd, model: MODEL })
  let now = 0
  const projection = new Projection(manager, { shape, model: MODEL, shortens: true, now: () => (now += 1_000) })
  const steps: Step[] = [{ user: 'go' }]
  let sent = ''
  const add = async (step: Step): Promise<void> => {
    steps.push(step)
    sent = JSON.stringify(await projection.transform(steps.flatMap((one) => written[shape](one, 1))))
  }
  for (const step of [read('call_0', b, lines('b')), read('call_1', a, lines('other')), read('call_0', a, lines('a')), read('again', a, SENTENCE)])
    await add(step)
  for (let number = 1; number < 9; number += 1) for (const step of turn(cwd, number)) await add(step)
  const [, id = ''] = /It has collapsed: toolcall_ref id=(\S+) tool=read/.exec(sent) ?? []
  expect(sent).toMatch(/read a\.txt -> lines 1-60 id=/)
  expect((await manager.get(id))?.content).toBe(lines('a'))
})
