/**
 * A library's host may name its tools and their arguments as Claude Code, Codex or OpenAI's examples do: the model learns of
 * changed files anyway.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { ShapeName } from '../lib/projection/harness.ts'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'

afterEach(cleanUp)

const lines = (count: number, at = -1): string =>
  Array.from({ length: count }, (_, n) => `line ${n} ${n === at ? 'of another user' : 'lorem ipsum'}\n`).join('')

/** A host in a folder with a file, and what its model is sent. */
async function host(shape: ShapeName) {
  const cwd = folder()
  const path = join(cwd, 'a.txt')
  writeFileSync(path, lines(40))
  const manager = await opened({ cwd, stay: SOON, watch: false, model: { contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 } })
  const messages: object[] = written[shape]({ user: 'begin' }, 1)
  let number = 0
  const call = async (name: string, args: Record<string, unknown>, output: string): Promise<string> => {
    messages.push(...written[shape]({ calls: [{ id: `call_${(number += 1)}`, name, args, output }] }, 1))
    await manager.transformContext(messages)
    // Gemini's model is told between its turns.
    messages.push(...written[shape]({ user: 'on' }, 1))
    return JSON.stringify(await manager.transformContext(messages))
  }
  return { path, manager, call }
}

const READS: [string, (path: string) => Record<string, unknown>][] = [
  ['read', (path) => ({ path })],
  ['Read', (file_path) => ({ file_path })],
  ['read_file', (path) => ({ path })],
  ['read_file', (target_file) => ({ target_file })],
]

const EDITS: [string, (path: string, oldText: string, newText: string) => Record<string, unknown>][] = [
  ['edit', (path, oldText, newText) => ({ path, edits: [{ oldText, newText }] })],
  ['Edit', (file_path, old_string, new_string) => ({ file_path, old_string, new_string })],
  ['replace', (file_path, old_string, new_string) => ({ file_path, old_string, new_string })],
]

test.each(shapes.flatMap((shape) => READS.map(([name, args]) => [shape, name, args] as const)))(
  '%s: the model has read a file with %s, and is told that it has changed',
  async (shape, name, args) => {
    const { path, manager, call } = await host(shape)
    expect(await call(name, args(path), lines(40))).not.toContain('stale id=')
    expect(await call('run', {}, 'done')).not.toContain('stale id=')
    writeFileSync(path, lines(40, 20))
    await manager.reconcile()
    expect(await call('run', {}, 'done')).toMatch(/stale id=\S+ path=\S*a\.txt/)
  },
)

test.each(shapes.flatMap((shape) => EDITS.map(([name, args]) => [shape, name, args] as const)))(
  '%s: the model has edited a file with %s, and hears only of the changes of others',
  async (shape, name, args) => {
    const { path, manager, call } = await host(shape)
    await call('read', { path }, lines(40))
    const own = lines(40).replace('line 5 lorem', 'line 5 edited')
    writeFileSync(path, own)
    expect(await call(name, args(path, 'line 5 lorem ipsum', 'line 5 edited ipsum'), 'The file has been edited.')).not.toContain('stale id=')
    writeFileSync(path, own.replace('line 20 lorem', 'line 20 of another user'))
    await manager.reconcile()
    const told = await call('run', {}, 'done')
    expect(told).toMatch(/stale id=\S+ path=\S*a\.txt/)
    expect(told.slice(told.indexOf('stale id='))).not.toContain('edited')
  },
)

test.each(shapes.flatMap((shape) => EDITS.map(([name, args]) => [shape, name, args] as const)))(
  '%s: with %s, the model has edited a file that others had changed unseen, and is told of that',
  async (shape, name, args) => {
    const { path, call } = await host(shape)
    await call('read', { path }, lines(40))
    writeFileSync(path, lines(40, 20).replace('line 5 lorem', 'line 5 edited'))
    await call(name, args(path, 'line 5 lorem ipsum', 'line 5 edited ipsum'), 'The file has been edited.')
    const told = await call('run', {}, 'done')
    expect(told.match(/stale id=\S+ path=\S*a\.txt[^"\\]*/g)).toEqual([expect.stringContaining('+1 -1')])
  },
)

test.each(shapes)('%s: arguments that have collapsed keep the names of the host', async (shape) => {
  const { call } = await host(shape)
  let sent = ''
  for (let n = 0; n < 40; n += 1) sent = await call('Write', { file_path: `/nowhere/f${n}.txt`, file_text: lines(60) }, 'written')
  const first = sent.slice(sent.indexOf('call_1'), sent.indexOf('call_2'))
  expect(first).toContain('file_text')
  expect(first).not.toContain('line 30 lorem')
})
