/** Relevance: the document's rule, and a caller's ranker with the rule behind it. */
import { describe, expect, test } from 'vitest'
import { keywords, PlainContextManager } from '../benches/storage/plain.ts'
import { ContextManager, type ContextPointer, type Ranker, type StorageOptions } from '../lib/storage/index.ts'
import { random } from '../rig/random.ts'
import { memoryFileSystem } from './storage/setup.ts'

/** An instance with one output for each description, and its pointers. */
async function open(descriptions: string[], options: StorageOptions = {}) {
  const messages: { message: string; data?: unknown }[] = []
  const manager = new ContextManager({
    contextDir: '/c',
    fileSystem: memoryFileSystem(),
    describe: (_, args) => String(args['is']),
    onDebug: (message, data) => messages.push({ message, data }),
    ...options,
  })
  for (const is of descriptions) await manager.saveContext('t', { is }, null)
  const pointers = manager.getAllPointers()
  const described = (paths: string[]) => paths.map((path) => pointers.find((p) => p.filepath === path)!.toolDescription)
  return { manager, pointers, messages, described }
}

/** Copies, which the instance has no index of. */
const foreign = (pointers: ContextPointer[]) => pointers.map((pointer) => ({ ...pointer }))

describe.each([
  ['its own pointers', (p: ContextPointer[]) => p],
  ['copies of them', foreign],
] as const)('over %s', (_, use) => {
  const select = async (query: string, descriptions: string[]) => {
    const { manager, pointers, described } = await open(descriptions)
    return described(manager.selectRelevantContexts(query, use(pointers)))
  }

  test('the highest overlap comes first, equal ones keep their order, and entries without overlap are left out', async () => {
    const descriptions = ['read error log', 'list files', 'authentication error', 'an error', 'authentication']
    expect(await select('authentication error', descriptions)).toEqual(['authentication error', 'read error log', 'an error', 'authentication'])
  })

  test('without a match all pointers are returned, in their order', async () => {
    const descriptions = ['zeta one', 'alpha two', 'mid three']
    expect(await select('nothing here', descriptions)).toEqual(descriptions)
    expect(await select('', descriptions)).toEqual(descriptions)
    expect(await select('is of by', ['is of by', 'else'])).toEqual(['is of by', 'else'])
    expect(await select('any', [])).toEqual([])
  })

  test.each([
    ['words of two characters do not count', 'go to it', ['go to it', 'go'], ['go to it', 'go']],
    ['words of three do', 'add', ['remove', 'add'], ['add']],
    ['a part of a word does not match', 'auth', ['authentication', 'auth'], ['auth']],
    ['case does not matter', 'ERROR', ['Some Error', 'else'], ['Some Error']],
    ['repetition does not count', 'error log', ['error error error', 'error log'], ['error log', 'error error error']],
    ['punctuation, paths and snake case separate', 'auth code', ['x src/auth.ts', 'search_code'], ['x src/auth.ts', 'search_code']],
    ['case folds in every script', 'ПОИСК ΟΔΟΣ STRASSE', ['поиск', 'οδος', 'straße', 'other'], ['поиск', 'οδος', 'straße']],
    ['composed and decomposed letters are equal', 're\u0301sume\u0301', ['résumé', 'other'], ['résumé']],
    ['characters outside the BMP are one each', '𐐨𐐨', ['𐐨𐐨', 'other'], ['𐐨𐐨', 'other']],
    ['and fold their case', '𐐀𐐀𐐀', ['other', 'x 𐐨𐐨𐐨'], ['x 𐐨𐐨𐐨']],
    ['NUL and lone surrogates only separate', 'one\0two', ['a\ud800two\0', 'one'], ['a\ud800two\0', 'one']],
  ])('%s', async (_name, query, descriptions, expected) => {
    expect(await select(query, descriptions)).toEqual(expected)
  })

  test('it is the rule as plain TypeScript writes it', async () => {
    const { below, pick } = random(8)
    const words = ['read', 'File', 'ERROR', 'auth', 'to', 'a', 'log', 'src', 'ts', '404', 'naïve', 'ТЕСТ', 'тест', '日本語', 'Log', 'x1y']
    const text = () => Array.from({ length: below(9) }, () => pick(words) + pick([' ', '_', '-', '/', '.', ' 😀 ', '\n'])).join('')
    const plain = new PlainContextManager({ contextDir: '/c' })
    for (let round = 0; round < 150; round += 1) {
      const { manager, pointers } = await open(Array.from({ length: below(30) }, text))
      const some = pointers.filter(() => below(4) > 0)
      const query = text()
      expect(manager.selectRelevantContexts(query, use(some)), JSON.stringify(query)).toEqual(plain.selectRelevantContexts(query, some))
    }
    expect(keywords('an Auth auth')).toEqual(new Set(['auth']))
  })
})

test("own, other instances' and earlier pointers can be mixed", async () => {
  const one = await open(['error one', 'calm'])
  const two = await open(['calm', 'error two'])
  const select = (pointers: ContextPointer[]) => one.manager.selectRelevantContexts('error', pointers)
  const mixed = [...two.pointers, ...one.pointers]
  expect(select(mixed)).toEqual([two.pointers[1]!.filepath, one.pointers[0]!.filepath])
  one.manager.clearPointers()
  await one.manager.saveContext('t', { is: 'calm again' }, null)
  expect(select(mixed)).toEqual([two.pointers[1]!.filepath, one.pointers[0]!.filepath])
  expect(select([...one.manager.getAllPointers(), ...one.pointers])).toEqual([one.pointers[0]!.filepath])
})

test('more foreign pointers than one block are ranked as one list', async () => {
  const { manager, pointers } = await open(['pattern'])
  const many = Array.from({ length: 5000 }, (_, n) => {
    const toolDescription = n % 1700 === 3 ? 'an error LOG 😀' : n % 1000 === 999 ? 'error é' : 'calm'
    return { ...pointers[0]!, filepath: `/c/${n}`, toolDescription }
  })
  const expected = new PlainContextManager({ contextDir: '/c' }).selectRelevantContexts('error log', many)
  expect(expected.slice(0, 4)).toEqual(['/c/3', '/c/1703', '/c/3403', '/c/999'])
  expect(manager.selectRelevantContexts('error log', many)).toEqual(expected)
})

test('wrong arguments are refused', async () => {
  const { manager } = await open([])
  const refusal = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
  expect(() => manager.selectRelevantContexts(1 as never, [])).toThrow(refusal)
  expect(() => manager.selectRelevantContexts('q', null as never)).toThrow(refusal)
  await expect(manager.selectRelevantContextsAsync(1 as never, [])).rejects.toEqual(refusal)
})

describe('with a ranker', () => {
  const descriptions = ['first error', 'second', 'third error']
  const fallback = ['first error', 'third error']
  const failed = 'the ranker gave no answer; the keyword rule was used'

  async function rank(ranker: Ranker, rankerTimeoutMs = 60_000) {
    const { manager, pointers, messages, described } = await open(descriptions, { ranker, rankerTimeoutMs })
    const selected = described(await manager.selectRelevantContextsAsync('error', pointers))
    return { selected, failures: messages.filter(({ message }) => message === failed) }
  }

  test('its answer is the order, without unknown and repeated paths', async () => {
    const asked: unknown[] = []
    const { selected, failures } = await rank(async (query, pointers, { signal }) => {
      asked.push(query, pointers.length, signal.aborted)
      const [a, b, c] = pointers.map(({ filepath }) => filepath) as [string, string, string]
      return [c, '/etc/passwd', b, c, a]
    })
    expect(asked).toEqual(['error', 3, false])
    expect(selected).toEqual(['third error', 'second', 'first error'])
    expect(failures).toEqual([])
  })

  test('it may answer at once, and that nothing is relevant', async () => {
    expect((await rank((_, pointers) => [pointers[1]!.filepath])).selected).toEqual(['second'])
    expect((await rank(() => [])).selected).toEqual([])
  })

  test.each<[string, Ranker]>([
    [
      'throws',
      () => {
        throw new Error('no key')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('no network')
      },
    ],
    ['answers with no array', (async () => 'first') as never],
    ['names no pointer', async () => ['/etc/passwd', 7 as never]],
  ])('the keyword rule answers where it %s', async (_, ranker) => {
    const { selected, failures } = await rank(ranker)
    expect(selected).toEqual(fallback)
    expect(failures).toEqual([{ message: failed, data: { reason: expect.stringMatching(/\w/) } }])
  })

  test('the keyword rule answers where it is slow; its signal is aborted and its late rejection harmless', async () => {
    const ended: unknown[] = []
    const { selected, failures } = await rank(
      (_, __, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            ended.push(signal.aborted)
            reject(new Error('late'))
          })
        }),
      1,
    )
    expect(selected).toEqual(fallback)
    expect(failures).toHaveLength(1)
    expect(ended).toEqual([true])
  })

  test('without one, the asynchronous call is the keyword rule', async () => {
    const { manager, pointers, described } = await open(descriptions)
    expect(described(await manager.selectRelevantContextsAsync('error', pointers))).toEqual(fallback)
  })
})
