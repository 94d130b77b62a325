/** The parts of the storage entry by themselves, and the entry in a package without the native addon. */
import { execFile } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ContextManager } from '../lib/storage/index.ts'
import { OutputCache } from '../lib/storage/cache.ts'
import { atMost } from '../lib/storage/gate.ts'
import { outputFileName, outputNames } from '../lib/storage/names.ts'
import { random } from '../rig/random.ts'
import { directory } from './storage/setup.ts'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))

test.each([
  ['read', 'read'],
  ['--weird näme..', '_-weird_n_me_'],
  ['', 'tool'],
  ['___', 'tool'],
  ['-rf', '_rf'],
  ['x'.repeat(100), 'x'.repeat(64)],
  ['CON', 'CON'],
])('name_of_tool_%j_is_one_plain_segment', (tool, segment) => {
  expect(outputFileName(tool, '{}', 1700000000000.7, 3)).toMatch(new RegExp(`^${segment}_44136f_1700000000000_3_[a-z0-9]{4}\\.json$`))
})

test('names_are_ordered_by_time_then_count_then_name', () => {
  const ours = [
    'a_b_abc123_9_1_zzzz.json',
    'b_abc123_10_2_aaaa.json',
    'c_abc123_10_2_aaaa.json',
    'a_abc123_10_10_aaaa.json',
    'a_abc123_18446744073709551615_2_aaaa.json',
  ]
  const leftovers = ['.a_abc123_10_2_aaaa.json.tmp']
  const foreign = [
    'a_abc123_10_2_AAAA.json',
    '-a_abc123_10_2_aaaa.json',
    'a_abc12_10_2_aaaa.json',
    'a_abc123_18446744073709551616_2_aaaa.json',
    'a.json',
    '',
    '.x.json.tmp',
  ]
  const all = [...ours, ...leftovers, ...foreign].toReversed()
  expect(outputNames(all, false)).toEqual(ours)
  expect(outputNames(all, true)).toEqual(leftovers)
})

test('cache_holds_the_texts_used_last_within_its_bytes', () => {
  const { next } = random(11)
  const cache = new OutputCache(60, 30)
  /** The same, written as a list: the text used last is at the end. */
  let model: { name: string; text: string }[] = []
  const size = (text: string) => Buffer.byteLength(text)
  const bytes = () => model.reduce((sum, { name, text }) => sum + size(name) + size(text), 0)
  for (let step = 0; step < 2000; step += 1) {
    const name = `n${Math.floor(next() * 8)}`
    const text = 'ü'.repeat(Math.floor(next() * 18))
    const what = Math.floor(next() * 20)
    const found = model.find((one) => one.name === name)
    const others = model.filter((one) => one !== found)
    if (what === 0) {
      cache.clear()
      model = []
    } else if (what < 8) {
      const fits = size(text) < 30 && size(name) + size(text) <= 60
      model = fits ? [...others, { name, text }] : others
      while (bytes() > 60) model.shift()
      expect(cache.put(name, text)).toBe(fits)
    } else if (what < 10) {
      cache.remove(name)
      model = others
    } else {
      expect(cache.get(name)).toBe(found?.text ?? null)
      model = found === undefined ? model : [...others, found]
    }
    expect(cache.bytes).toBe(bytes())
  }
})

test('tasks_beyond_the_limit_wait_and_failures_free_their_place', async () => {
  const limited = atMost(3)
  let [running, most] = [0, 0]
  const task = (n: number) => async () => {
    most = Math.max(most, (running += 1))
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    if (n % 4 === 0) throw new Error('refused')
    return n
  }
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => limited(task(n))))
  expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(Array.from({ length: 20 }, (_, n) => n % 4 !== 0))
  expect(most).toBe(3)
})

test('a package without the native addon saves, finds, loads and clears', async () => {
  const folder = await directory()
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  const outputs = join(folder, 'outputs')
  writeFileSync(
    join(folder, 'try.mjs'),
    `import { ContextManager } from './dist/storage/index.js'
    const manager = new ContextManager({ contextDir: process.argv[2], cacheBytes: 1000 })
    const path = await manager.saveContext('read', { path: 'needle.txt' }, { text: 'kept' })
    await manager.saveContext('bash', { command: 'ls' }, 'out')
    const found = manager.selectRelevantContexts('the needle', manager.getAllPointers())
    const again = new ContextManager({ contextDir: process.argv[2] })
    console.log(JSON.stringify([found[0] === path, (await again.loadContexts([path]))[0].result, await again.restorePointers()]))
    const brief = new ContextManager({ contextDir: process.argv[2], autoCleanup: true })
    await brief.saveContext('ls', {}, 'gone at the end')
    const main = await import('./dist/index.js').catch((error) => error.message)
    console.log(main)`,
  )
  const { stdout } = await execute(process.execPath, [join(folder, 'try.mjs'), outputs])
  const [result, sentence] = stdout.trim().split('\n')
  expect(JSON.parse(result!)).toEqual([true, { text: 'kept' }, 2])
  expect(sentence).toMatch(/^the native addon of pi-context-manager for \S+ is missing/)
  expect(await readdir(outputs)).toHaveLength(2)
  const here = new ContextManager({ contextDir: outputs })
  expect(await here.restorePointers()).toBe(2)
  await here.clearContextDir()
  expect(await readdir(outputs)).toEqual([])
})
