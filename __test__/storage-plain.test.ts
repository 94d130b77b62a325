/** The storage entry without the native addon: the same names, the same choices, the same files. */
import { execFile } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { loadAddon } from '../lib/addon.ts'
import { ContextManager } from '../lib/storage.ts'
import * as plain from '../lib/storage/plain.ts'
import { random } from './rig/random.ts'
import { directory } from './storage/setup.ts'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const native = loadAddon()

/** Words that meet where case and form are put aside, and marks that make no words. */
const WORDS = ['Straße', 'STRASSE', 'ſtraße', 'Σίσυφος', 'ΣΊΣΥΦΟΣ', 'ﬁle', 'FILE', 'file', 'naïve', 'naïve', 'ab', 'a_b', 'x1y2',
  '日本語', '①②③', 'İstanbul', 'istanbul', '𝔘𝔫𝔦', 'uni', 'e\u0301t\u0301', '\ud800', 'größe', 'GRÖSSE', 'и́мя', 'ИМЯ', '٣٤٥', '-', '_', '.', '/', ' ', ' ', ' ']

const some = (next: () => number, count: number): string =>
  Array.from({ length: count }, () => WORDS[Math.floor(next() * WORDS.length)]).join('')

describe('the same as the native half', () => {
  test('descriptions by keywords', () => {
    const { next } = random(7)
    for (let round = 0; round < 300; round += 1) {
      const texts = Array.from({ length: 8 }, () => some(next, 9))
      const query = some(next, 7)
      const places = Uint32Array.from([0, 3, 1, 7, 2, 9])
      const lengths = Uint32Array.from(texts, (text) => text.length)
      const of = (half: Pick<typeof plain, 'RelevanceIndex' | 'RelevanceRanking'>) => {
        const index = new half.RelevanceIndex()
        for (const text of texts) index.add(text)
        const ranking = new half.RelevanceRanking(query)
        ranking.add(texts.join(''), lengths)
        return [index.rank(query, places), ranking.order()].map((order) => order && [...order])
      }
      // A text whose end is half of a pair meets the next one's beginning.
      if (texts.some((text) => text.endsWith('\ud800'))) continue
      expect(of(plain), JSON.stringify({ texts, query })).toEqual(of(native as never))
    }
  })

  test.each<[string, object]>([
    ['read', { path: 'a.txt' }],
    ['--weird näme..', { b: 1, a: [1.5, 1e21, -0, 'ü\ud800', null, true], é: {} }],
    ['', {}],
    ['x'.repeat(100), { '\u{1F600}': 1, '\uFB33': 2 }],
  ])('the name of a file of %j', (tool, args) => {
    const stable = (name: string): string => name.replace(/_[a-z0-9]{4}\.json$/, '')
    const text = JSON.stringify(args)
    expect(stable(plain.outputFileName(tool, text, 1700000000000.7, 3))).toBe(
      stable(native.outputFileName(tool, text, 1700000000000.7, 3)),
    )
  })

  test('which names are ours, in which order, and the id of a query', () => {
    const names = ['b_abc123_10_2_aaaa.json', 'a_abc123_10_10_aaaa.json', 'a_b_abc123_9_1_zzzz.json', '.a_abc123_10_2_aaaa.json.tmp',
      'a_abc123_10_2_AAAA.json', '-a_abc123_10_2_aaaa.json', 'a_abc12_10_2_aaaa.json', 'a_abc123_99999999999999999999_2_aaaa.json', 'a.json', '']
    for (const temporary of [false, true]) expect(plain.outputNames(names, temporary)).toEqual(native.outputNames(names, temporary))
    for (const query of ['', 'find it', 'ü\ud800']) expect(plain.outputQueryHash(query)).toBe(native.outputQueryHash(query))
  })

  test('the cache', () => {
    const { next } = random(11)
    const [ours, theirs] = [new plain.OutputCache(60, 30), new native.OutputCache(60, 30)]
    for (let step = 0; step < 2000; step += 1) {
      const name = `n${Math.floor(next() * 8)}`
      const text = 'ü'.repeat(Math.floor(next() * 18))
      const what = Math.floor(next() * 20)
      if (what === 0) {
        ours.clear()
        theirs.clear()
      } else if (what < 8) expect(ours.put(name, text)).toBe(theirs.put(name, text))
      else if (what < 10) {
        ours.remove(name)
        theirs.remove(name)
      } else expect(ours.get(name)).toBe(theirs.get(name))
      expect(ours.bytes).toBe(theirs.bytes)
    }
  })
})

test('a package without the native addon saves, finds, loads and clears what the native half reads, too', async () => {
  const folder = await directory()
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  const outputs = join(folder, 'outputs')
  writeFileSync(
    join(folder, 'try.mjs'),
    `import { ContextManager } from './dist/storage.js'
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
