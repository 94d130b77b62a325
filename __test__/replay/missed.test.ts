import { describe, expect, test } from 'vitest'
import { textBlock } from '../../lib/recordings/blocks.ts'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { OwnPhrases } from '../../lib/replay/missed/phrases.ts'
import { Scanner } from '../../lib/replay/missed/probes.ts'
import { Shown } from '../../lib/replay/missed/shown.ts'
import { addUses, count, noUses } from '../../lib/replay/missed/uses.ts'
import type { MissedUses } from '../../lib/replay/missed/uses.ts'
import { Vocabulary } from '../../lib/replay/missed/vocabulary.ts'
import type { Step } from '../../lib/recordings/recording.ts'
import { random } from '../../rig/random.ts'
import { entriesOf, fixture, stepsOf } from './support.ts'
import { CWD, missed, outputs, read, RUN, RUNS, stepsFrom } from './talk.ts'
import type { Line } from './talk.ts'

/** The quotes and names in a text, as hashes. */
function probesOf(text: string): { quotes: Set<string>; names: Set<string> } {
  const quotes = new Set<string>()
  const names = new Set<string>()
  new Scanner().scan(text, CWD, {
    quote: (high, low) => void quotes.add(`${high} ${low}`),
    name: (high, low) => void names.add(`${high} ${low}`),
  })
  return { quotes, names }
}

/** Number of a text's quotes and names that another text also has. */
function shared(left: string, right: string): { quotes: number; names: number } {
  const [a, b] = [probesOf(left), probesOf(right)]
  const common = (one: Set<string>, other: Set<string>): number => [...one].filter((hash) => other.has(hash)).length
  return { quotes: common(a.quotes, b.quotes), names: common(a.names, b.names) }
}

describe('a quote is a run of 30 characters', () => {
  const TEXT = 'the price of every part is rounded up to whole cents before tax'
  test.each([
    ['before it: the price of every part is rounded up', 1],
    ['before it: the price of every part is rounded, too', 0],
    ['the  price of\n every\tpart is rounded up', 1],
    ['    12→the price of every part is rounded up', 1],
    ['THE price of every part is rounded up', 0],
    ['of every part is rounded up to whole cents before', 2],
    ['', 0],
  ])('%j shares %i', (text, quotes) => {
    expect(shared(TEXT, text).quotes).toBe(quotes)
  })

  test.each([
    ['------------------------------------------', 0],
    ['| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 |', 0],
    [`${'QUJD'.repeat(100)} and more`, 0],
  ])('%j has %i', (text, quotes) => {
    expect(probesOf(text).quotes.size).toBe(quotes)
  })
})

describe('a name is a word that does not occur by chance', () => {
  test.each([
    ['parseHeaderLine', 1],
    ['read_price', 1],
    ['configuration', 0],
    ['HTTP_OK', 0],
    ['MAX_PRICE', 1],
    ['Configuration', 0],
    ['_private', 0],
    ['12parsePrice', 1],
    ['a1b2c3d', 1],
    ['deadbeef', 0],
    ['1234567', 0],
    ['money.ts', 1],
    ['src/money.test.ts', 1],
    ['money.tsx2', 0],
    ['.ts', 0],
    ['cart..ts and money.go-old', 1],
    ['/home/dev/shop/src/cart.ts', 1],
    ['two: money.ts, parsePrice', 2],
  ])('%j has %i', (text, names) => {
    expect(probesOf(text).names.size).toBe(names)
  })

  test.each([
    ['/home/dev/shop/src/cart.ts', 'src/cart.ts'],
    ['see parsePrice()', 'const x = parsePrice(7)'],
    ['money.test.ts.map', 'money.test.ts'],
  ])('%j and %j name the same', (left, right) => {
    expect(shared(left, right).names).toBe(1)
  })
})

/** The same found by regular expressions, slowly: what the words of the definition say. */
function byTheBook(text: string): { quotes: Set<string>; names: Set<string> } {
  const short = text.replaceAll(`${CWD}/`, '').replaceAll(CWD, '.')
  const words = short.replace(/^ *\d+(?:→|\t)/gm, '').match(/[A-Za-z0-9_]+|[^\sA-Za-z0-9_]/g) ?? []
  const letters = (word: string): boolean => /[A-Za-z]{3}/.test(word)
  const quotes = new Set<string>()
  for (const [start, first] of words.entries()) {
    let end = start
    for (let chars = 0; end < words.length && chars < 30; end += 1) chars += (words[end] as string).length
    const run = words.slice(start, end)
    if (run.join('').length < 30) break
    if (letters(first) && first.length <= 200 && run.filter(letters).length >= 2) quotes.add(run.join(' '))
  }
  const names = new Set<string>()
  const endings = 'go|mod|sum|tsx|ts|jsonl|json|js|md|py|c|h|java'
  for (const [name] of short.matchAll(new RegExp(`[\\w-]+(?:\\.[\\w-]+)*\\.(?:${endings})\\b`, 'g'))) names.add(name)
  for (const [name] of short.matchAll(/\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b/g)) names.add(name)
  for (const [name] of short.matchAll(/[A-Za-z_][A-Za-z0-9_]{7,}/g)) {
    if (/[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]/.test(name)) names.add(name)
  }
  return { quotes, names }
}

test('for any text, the findings are those of the definition', () => {
  const PIECES = [
    ...'a1_.-/ \n\t→"{}é漢\u00a0\r',
    ...['the', 'price', 'parsePrice', 'read_all', '__x', 'X', 'Abc', '12', 'money.ts', '.go', 'a1b2c3d', 'deadbeef'],
    ...[`${CWD}/src/cart.ts`, CWD, '\n  12→', '\n 7\t', ' of ', '..', 'x'.repeat(201), 'HTTP_OK', 'foo.bar.json-x.ts'],
  ]
  const rng = random(7)
  for (let round = 0; round < 3000; round += 1) {
    const text = Array.from({ length: rng.below(40) }, () => rng.pick(PIECES)).join('')
    const found = probesOf(text)
    const expected = byTheBook(text)
    expect([found.quotes.size, found.names.size], JSON.stringify(text)).toEqual([expected.quotes.size, expected.names.size])
  }
})

describe('a use of hidden text', () => {
  const HEAD: Line[] = [{ user: 'begin' }, read(RUNS), { says: 'well' }]
  test.each<[string, Line[], tool: [number, number], own: [number, number]]>([
    ['a quote', [...HEAD, { says: RUN }], [1, 0], [0, 0]],
    ['a shorter run', [...HEAD, { says: 'every part is rounded' }], [0, 0], [0, 0]],
    ['three quotes', [...HEAD, { says: RUNS }], [1, 1], [0, 0]],
    ['a quote in the arguments of a call', [...HEAD, { calls: ['bash', { command: `echo ${RUN}` }, ''] }], [1, 0], [0, 0]],
    ['a quote in the thinking', [...HEAD, { thinks: RUN, says: 'yes' }], [1, 0], [0, 0]],
    ['nothing', [...HEAD, { says: 'it is something else altogether, with no earlier source' }], [0, 0], [0, 0]],
    ['the same source twice in a turn', [...HEAD, { says: RUN }, { says: RUNS }], [1, 0], [0, 0]],
    ['once in each turn', [...HEAD, { says: RUN }, { user: 'continue' }, { says: RUNS }], [2, 1], [0, 0]],
    [
      'two sources',
      [
        ...HEAD,
        read('discounts apply to carts before tax and shipping'),
        { says: 'x' },
        { says: `${RUN}, and discounts apply to carts before tax and shipping` },
      ],
      [2, 0],
      [0, 0],
    ],
    ['text that the user gave too', [{ user: RUN }, read(RUN), { says: RUN }], [0, 0], [0, 0]],
    ['text that a summary took away', [...HEAD, { compacts: 'prices' }, { says: RUN }], [0, 0], [0, 0]],
    ['text that a summary tells', [...HEAD, { compacts: RUN }, read(RUN), { says: RUN }], [0, 0], [0, 0]],
    ['one name', [{ user: 'go' }, read('call parsePrice here'), { says: 'x' }, { says: 'parsePrice is wrong' }], [1, 0], [0, 0]],
    ['three names', [{ user: 'go' }, read('parsePrice readPart money.ts'), { says: 'x' }, { says: 'money.ts, readPart, parsePrice' }], [1, 1], [0, 0]],
    ['words that anybody writes', [{ user: 'go' }, read('configuration'), { says: 'configuration' }], [0, 0], [0, 0]],
  ])('%s', (_, lines, [all, strong], [own, ownStrong]) => {
    const { toolText, ownWords } = missed(stepsFrom(lines), outputs)
    expect([toolText, ownWords]).toEqual([
      { all, strong },
      { all: own, strong: ownStrong },
    ])
  })

  test('text read again is in sight, whatever its source', () => {
    const lines: Line[] = [{ user: 'go' }, read(RUNS), { says: 'well' }, read(RUNS), { says: RUNS }]
    const first = (key: string): boolean => key === 'r1'
    expect(missed(stepsFrom(lines), first).toolText).toEqual({ all: 0, strong: 0 })
    expect(missed(stepsFrom(lines), outputs).toolText).toEqual({ all: 1, strong: 1 })
  })

  test('the newest of several sources is missed', () => {
    const lines: Line[] = [{ user: 'go' }, read(RUN), { calls: ['bash', { command: 'go test ./...' }, RUN] }, { says: RUN }]
    const { byKind, byAge, byUse, atOnce } = missed(stepsFrom(lines), outputs)
    expect(byKind).toEqual({ 'bash: build, test': { all: 1, strong: 0 } })
    expect(byUse).toEqual({ answer: { all: 1, strong: 0 } })
    expect(byAge['1']).toEqual({ all: 1, strong: 0 })
    expect(atOnce).toEqual({ all: 1, strong: 0 })
  })

  test.each([
    [0, '1', 1],
    [1, '2-3', 0],
    [2, '2-3', 0],
    [3, '4-6', 0],
    [11, '7-12', 0],
    [12, '13-25', 0],
    [49, '26-50', 0],
    [50, '51+', 0],
  ])('after %i other answers its age is %s', (others, age, atOnce) => {
    const waiting = Array.from({ length: others }, (_, n): Line => ({ says: `wait ${n}` }))
    const uses = missed(stepsFrom([{ user: 'go' }, read(RUN), ...waiting, { says: RUN }]), outputs)
    expect(Object.entries(uses.byAge).filter(([, { all }]) => all > 0)).toEqual([[age, { all: 1, strong: 0 }]])
    expect(uses.atOnce.all).toBe(atOnce)
  })

  test('counts the model’s own words and arguments', () => {
    const write: Line = { calls: ['write', { path: 'b', content: RUNS }, 'done'] }
    const lines: Line[] = [{ user: 'go' }, { thinks: RUN, says: 'hm' }, { says: RUN }]
    const own = missed(stepsFrom(lines), (_, { label }) => label === 'thinking')
    expect([own.toolText.all, own.ownWords]).toEqual([0, { all: 1, strong: 0 }])
    const uses = missed(stepsFrom([{ user: 'go' }, write, { says: RUNS }]), (_, { label }) => label === 'write arguments')
    expect(uses.byKind).toEqual({ 'write arguments': { all: 1, strong: 1 } })
    expect(uses.ownWords.all).toBe(0)
  })

  test('an edit tells the old text from the new one', () => {
    const edit: Line = { calls: ['edit', { path: 'a', edits: [{ oldText: RUN, newText: RUNS }] }, 'done'] }
    const { byUse } = missed(stepsFrom([{ user: 'go' }, read(RUNS), { says: 'x' }, edit]), outputs)
    expect(Object.keys(byUse).sort()).toEqual(['edit: new text', 'edit: old text'])
  })

  test('after a step back the abandoned text is out of sight, and text from before a compaction stays so', () => {
    const [go, a, r, ...rest] = [...stepsFrom([{ user: 'go' }, read(RUN), { says: 'x' }, { user: 'on' }, { says: RUN }])]
    const [, next, answer] = rest as Step[]
    const back = (keys: string[], summary?: string): Step => ({
      kind: 'branch',
      keys,
      at: 0,
      ...(summary !== undefined && { compaction: { summary, kept: undefined } }),
    })
    const uses = (step: Step): number => missed([go, a, r, step, next, answer] as Step[], () => true).toolText.all
    expect(uses(back(['u0', 'a1', 'r1']))).toBe(1)
    expect(uses(back(['u0']))).toBe(0)
    expect(uses(back(['u0', 'a1', 'r1'], 'prices'))).toBe(0)
  })
})

test('text that answers of two sessions share by habit does not count as a use', async () => {
  const words = 'I will look at the files first and then run the tests'
  const own: Line[] = [{ user: 'go' }, { says: words }]
  const lines: Line[] = [{ user: 'go' }, read(words), { says: 'x' }, { says: words }]
  const recording = (from: Line[]) => ({
    origin: { format: 'pi' as const, version: 3, id: 's', cwd: CWD },
    steps: () =>
      (async function* () {
        yield* stepsFrom(from)
      })(),
  })
  const phrases = new OwnPhrases()
  await phrases.learn(recording(own))
  await phrases.learn(recording(lines))
  expect(missed(stepsFrom(lines), outputs, phrases).toolText).toEqual({ all: 1, strong: 1 })
  await phrases.learn(recording(own))
  expect(missed(stepsFrom(lines), outputs, phrases)).toEqual(noUses())
})

describe('whatever is hidden', () => {
  test.each(['pi-version-1.jsonl', 'pi-version-3.jsonl', 'claude-code.jsonl'])('%s', async (name) => {
    const { steps } = await stepsOf(fixture(name))
    const none = missed(steps, () => false)
    expect(none).toEqual(noUses())
    const all = missed(steps, () => true)
    expect(all.toolText.strong).toBeGreaterThan(5)
    const rng = random(3)
    for (let round = 0; round < 4; round += 1) {
      const hidden = new Set(entriesOf(steps).flatMap(({ key }) => (rng.below(2) === 0 ? [key] : [])))
      const some = missed(steps, (key) => hidden.has(key))
      const total = (uses: MissedUses) => uses.toolText.all + uses.ownWords.all
      expect(total(some)).toBeGreaterThan(0)
      expect(total(some)).toBeLessThan(total(all))
      for (const sum of [some.byAge, some.byKind]) {
        const parts = noUses().toolText
        for (const one of Object.values(sum)) {
          parts.all += one.all
          parts.strong += one.strong
        }
        expect(parts).toEqual(some.toolText)
      }
      expect(some.toolText.strong).toBeLessThanOrEqual(some.toolText.all)
    }
  })

  test('a request counted by its changes has the count of a fresh one', () => {
    const rng = random(11)
    const texts = Array.from({ length: 12 }, (_, n) => Uint32Array.from([n % 5, 5 + (n % 3)]))
    const blocks = texts.map((_, n) => textBlock(`block ${n}`, 'user'))
    const idsOf = (block: ReplayBlock): Uint32Array => texts[blocks.findIndex(({ bytes }) => bytes === block.bytes)] as Uint32Array
    const shown = new Shown(8, idsOf)
    for (let round = 0; round < 500; round += 1) {
      const request = blocks.filter(() => rng.below(3) > 0).map((block) => (rng.below(4) === 0 ? { ...block } : block))
      if (rng.below(5) === 0) request.push(rng.pick(blocks))
      shown.set(request)
      const expected = new Set(request.flatMap((block) => [...idsOf(block)]))
      for (let id = 0; id < 8; id += 1) expect(shown.has(id)).toBe(expected.has(id))
    }
  })

  test('a vocabulary numbers each hash once, and finds it again', () => {
    const rng = random(5)
    const vocabulary = new Vocabulary()
    const known = new Map<string, number>()
    for (let round = 0; round < 30_000; round += 1) {
      const [high, low] = [rng.below(200), rng.below(200)]
      const key = `${high} ${low}`
      expect(vocabulary.find(high, low)).toBe(known.get(key))
      const id = vocabulary.add(high, low, low === 7)
      expect(id).toBe(known.get(key) ?? known.size)
      known.set(key, id)
      expect(vocabulary.hash(id)).toEqual([high, low])
      expect(vocabulary.isName(id)).toBe(low === 7)
    }
    expect(vocabulary.size).toBe(known.size)
  })
})

test('uses add up', () => {
  const use = { kind: 'read', ownWords: false, age: 1, quotes: 3, names: 0, where: new Set(['answer', 'thinking']) }
  const one = noUses()
  count(one, use)
  const two = noUses()
  addUses(two, one)
  addUses(two, one)
  count(two, { ...use, ownWords: true, names: 2, quotes: 2 })
  expect(two).toMatchObject({
    toolText: { all: 2, strong: 2 },
    ownWords: { all: 1, strong: 0 },
    atOnce: { all: 2, strong: 2 },
    byKind: { read: { all: 2, strong: 2 } },
    byUse: { answer: { all: 2, strong: 2 }, thinking: { all: 2, strong: 2 } },
  })
})
