/** The screen of `/context` without Pi: what it shows at every size, and how things are made to fit. */
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Theme } from '@earendil-works/pi-coding-agent'
import { visibleWidth } from '@earendil-works/pi-tui'
import type { Component } from '@earendil-works/pi-tui'
import { fitName, fitNames, nameOf } from '../../extensions/names.ts'
import type { Output } from '../../extensions/outputs.ts'
import { showPanel } from '../../extensions/panel.ts'
import type { Report } from '../../extensions/report.ts'
import { drawHelp, drawScreen } from '../../extensions/screen.ts'
import type { View } from '../../extensions/screen.ts'
import { apportion, percentParts, short, shortParts } from '../../extensions/shares.ts'
import { random as randomFrom } from '../../rig/random.ts'

const theme = {
  fg: (_color: string, text: string) => `\x1b[36m${text}\x1b[39m`,
  bold: (text: string) => `\x1b[1m${text}\x1b[22m`,
} as unknown as Theme

const output = (index: number, more: Partial<Output> = {}): Output => ({
  id: `0123abc${index % 10}`,
  tool: 'read',
  name: `packages/server/src/routes/file-${index}.ts`,
  form: index % 3 === 0 ? 'full' : index % 3 === 1 ? 'excerpt' : 'reference',
  tokens: 5000 - 10 * index,
  whole: 6000,
  mayCollapse: index % 4 === 0,
  pinned: index === 3,
  failed: index === 5,
  turn: 1 + Math.floor(index / 10),
  callsAgo: index,
  ...more,
})

const report: Report = {
  shares: [
    { name: 'tool outputs', tokens: 25_400 },
    { name: 'messages', tokens: 8_300 },
    { name: 'tool calls', tokens: 4_200 },
    { name: 'system prompt', tokens: 2_900 },
    { name: 'references', tokens: 600 },
  ],
  outputs: Array.from({ length: 60 }, (_, index) => output(index)),
  contextTokens: 41_400,
  perCharacter: 0.25,
  roll: { items: 3, removedTokens: 12_000, cost: 9000, gain: 1200, paysBackAfterCalls: 8, reason: 'asked' },
  inputPrice: 3e-6,
  contextWindow: 200_000,
  active: 5,
  objects: 70,
  cachedShare: 0.94,
  cost: 0.46,
  isBilled: false,
  isPlan: false,
  plan: undefined,
  tokenPrice: 3.75e-6,
  saved: 0.59,
  uncounted: undefined,
  savedTokens: 196_000,
  held: undefined,
  lifetime: undefined,
  receipts: [1, 2, 3, 4].map((items) => ({
    items,
    removedTokens: 9000,
    cost: 900,
    gain: 900,
    paysBackAfterCalls: 2,
    reason: 'pays',
  })),
  off: false,
  store: '/data/context.db',
  storeHint: undefined,
}

function draw(width: number, height: number, view: Partial<View> = {}, some: Partial<Report> = {}): string[] {
  const whole = { ...report, ...some }
  const { lines } = drawScreen(whole, { rows: whole.outputs, selected: 0, filter: undefined, message: '', ...view }, width, height, theme)
  return lines.map(stripVTControlCharacters)
}

const WIDTHS = [60, 80, 100, 140, 180]
/** Rows that Pi's footer leaves of 16 to 50. */
const HEIGHTS = [13, 16, 21, 27, 37, 47]
const CHOSEN = { why: 'system and tools are kept for an hour; the conversation, which rolls rewrite, for five minutes', savedTokens: 40_000 }
const SIZES = WIDTHS.flatMap((width) => HEIGHTS.map((height): [number, number] => [width, height]))

describe('the screen at every size', () => {
  test.each(SIZES)('%d columns, %d rows: the three questions are answered, and it fits', (width, height) => {
    const lines = draw(width, height)
    const text = lines.join('\n')
    expect(lines).toHaveLength(height)
    for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width)
    expect(lines[0]).toBe('─'.repeat(width))
    expect(lines.at(-1)).toBe('─'.repeat(width))
    expect(lines[1]).toContain('Context 41k of 200k tokens (21 %)')
    expect(lines[2]).toMatch(/^ █+▓+▒+░+▪+·+$/)
    expect(text).toContain('Saved $0.59 (56 %)')
    for (const hint of ['enter open', '? keys', '/ filter', 'p pin', 'd drop', 'b bring back', 'r roll 12k', 'u undo', 'o off', 'esc close']) {
      expect(text).toContain(hint)
    }
    expect(text).toContain('(1/60)')
  })

  test.each(SIZES)('%d columns, %d rows: rows are whole, and a message leaves the hints in place', (width, height) => {
    const lines = draw(width, height, { selected: 31, message: 'It is pinned: it does not collapse.' })
    expect(lines).toHaveLength(height)
    const rows = lines.filter((line) => /file-\d+\.ts/.test(line))
    expect(rows.length).toBeGreaterThanOrEqual(2)
    for (const row of rows) expect(row).toMatch(/^ [ →] \S*\/file-\d+\.ts +(full|excerpt|reference) +([\d.]+k?|-)( |$)/)
    expect(rows.filter((row) => row.startsWith(' →'))).toEqual([expect.stringContaining('file-31.ts')])
    const text = lines.join('\n')
    for (const part of ['It is pinned', 'esc close', '(32/60)']) expect(text).toContain(part)
  })

  test.each(SIZES)('%d columns, %d rows: a filter and a long message push nothing off the screen', (width, height) => {
    const message = 'packages/server/src/routes/file-1.ts goes to the model with your next message, and stays as long as it is pinned.'
    const lines = draw(width, height, { selected: 31, filter: '/file', message })
    const text = lines.join('\n')
    expect(lines.length).toBeLessThanOrEqual(height)
    for (const part of ['Context 41k', 'tool outputs', 'Saved $0.59', '/file  (32/60)', '→', 'pinned.', 'esc close']) expect(text).toContain(part)
    const chosen = draw(width, height, { selected: 31, filter: '/file', message }, { lifetime: CHOSEN })
    expect(chosen.length).toBeLessThanOrEqual(height)
    for (const line of chosen) expect(line).not.toMatch(/lifetime.*…/)
  })

  test.each([
    [60, '9.0k tokens, pays back in 2 calls'],
    [100, '9.0k tokens removed, cost 900 input tokens, pays back in 2 calls'],
  ])('at %d columns a receipt is whole', (width, words) => {
    const rolls = draw(width, 47).filter((line) => line.includes('items'))
    expect(rolls.map((line) => line.trim())).toEqual([`Last roll: 4 items, ${words}`, `3 items, ${words}`, `2 items, ${words}`])
  })

  test('the fate of the selected output is told', () => {
    const fate = (more: Partial<Output>): string => draw(100, 40, { rows: [output(1, more)] }).find((line) => line.includes(' id='))!
    expect(fate({ mayCollapse: false, form: 'full' })).toContain('it stays for now')
    expect(fate({ mayCollapse: true, form: 'full' })).toContain('the model has not needed it for a while: r collapses it')
    expect(fate({ form: 'reference' })).toContain('the model sees one line; b brings 6.0k tokens back')
    expect(fate({ form: 'line' })).toContain('its call is one line behind another output; b brings 6.0k tokens back')
    expect(fate({ form: 'line', back: 'next' })).toContain('its text goes to the model with your next message')
    expect(fate({ form: 'reference', back: 'there' })).toContain('its text is in the conversation again')
    expect(fate({ pinned: true })).toContain('pinned: it never collapses')
  })

  test('age, turn and failure are in the row, as far as it has room', () => {
    const row = (width: number, more: Partial<Output> = {}): string =>
      draw(width, 40, { rows: [output(5, { id: '0123abcd', form: 'full', pinned: false, mayCollapse: false, ...more })] }).find((line) => line.includes('→'))!
    expect(row(80)).toMatch(/file-5\.ts +full +[\d.]+k +5 calls ago +failed$/)
    expect(row(120)).toMatch(/full +[\d.]+k +5 calls ago +turn 1 +read +0123abcd +failed$/)
    expect(row(80, { pinned: true })).toContain('failed, pinned')
    expect(row(80, { callsAgo: 1, failed: false })).toMatch(/1 call ago$/)
    expect(row(80, { callsAgo: 0, failed: false })).toMatch(/just now$/)
    expect(row(60)).toMatch(/full +[\d.]+k +failed$/)
  })

  test('at 80 columns neither the keys nor the description of an output is cut', () => {
    expect(drawHelp(80, 40, theme).join('\n')).not.toContain('…')
    const row = output(1, {
      tool: 'search_context',
      id: '0123abcd',
      form: 'reference',
      failed: true,
      pinned: false,
      mayCollapse: false,
      turn: 120,
      callsAgo: 1200,
    })
    for (const width of [60, 80]) {
      const lines = draw(width, 40, { rows: [row] }).map((line) => line.trim())
      const at = lines.findIndex((line) => line.startsWith('search_context id='))
      expect(`${lines[at]} ${lines[at + 1]}`.trim()).toBe(
        `search_context id=0123abcd, turn 120${width < 78 ? ', 1200 calls ago' : ''}; the model sees one line; b brings 6.0k tokens back`,
      )
    }
  })

  test('two files of one name are told apart at 80 columns', () => {
    const name = (folder: string): string => `packages/a-server-with-a-long-name/${folder}/some/more/folders/src/index.ts`
    const lines = draw(80, 40, { rows: ['client', 'routes'].map((folder, n) => output(n, { name: name(folder) })) })
    expect(
      lines
        .filter((line) => line.includes('index.ts'))
        .map((line) =>
          line
            .trim()
            .split(/ +/)
            .find((part) => part.includes('index')),
        ),
    ).toEqual(['…/client/…/index.ts', '…/routes/…/index.ts'])
  })

  test.each(SIZES)('%d columns, %d rows: the page of keys fits', (width, height) => {
    const lines = drawHelp(width, height, theme).map(stripVTControlCharacters)
    expect(lines.length).toBeLessThanOrEqual(height)
    for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width)
    expect(lines.join('\n')).toContain('any key goes back')
  })

  test('a high terminal shows more rows, a short list no more lines than it needs', () => {
    const rows = (height: number): number => draw(100, height).filter((line) => /file-\d+\.ts/.test(line)).length
    expect(rows(47)).toBe(rows(37) + 10)
    const few = draw(100, 47, { rows: report.outputs.slice(0, 2) })
    expect(few.length).toBeLessThan(26)
    expect(few.join('\n')).not.toContain('(1/2)')
  })

  test('the parts add up to the title, in tokens and percent', () => {
    const legend = draw(180, 40)[3]!
    const figures = [...legend.matchAll(/(\w[\w ]*?) (<?[\d.]+)k (<?\d+) %/g)]
    expect(figures.map((found) => found[1])).toEqual(['tool outputs', 'messages', 'tool calls', 'system prompt', 'references', 'free'])
    const sum = (place: number): number => figures.slice(0, 5).reduce((all, found) => all + (found[place]!.startsWith('<') ? 0 : Number(found[place])), 0)
    expect([sum(2), sum(3)]).toEqual([41, 21])
    const bar = draw(180, 40)[2]!.trim()
    expect(bar.length).toBe(179)
    expect(bar.replaceAll('·', '').length).toBe(Math.round((179 * 41_400) / 200_000))
  })

  test.each<[string, Partial<View>, Partial<Report>, string[], string[]]>([
    [
      'nothing at all',
      { rows: [] },
      { outputs: [], shares: [], contextTokens: 0, savedTokens: 0 },
      ['No tool output on this branch yet', 'Nothing saved yet'],
      ['may collapse'],
    ],
    ['a filter without a match', { rows: [], filter: '/nothing' }, {}, ['/nothing', 'No output matches the filter'], []],
    ['off', {}, { off: true }, ['collapsing is off', 'o on'], ['collapsing is on']],
    ['nothing stale', {}, { roll: undefined }, ['r roll ·'], ['r roll 12k']],
    ['a price in dollars', {}, {}, ['r roll 12k, $0.03'], []],
    ['a price without a catalogue', {}, { inputPrice: 0 }, ['r roll 12k, for 9.0k once'], []],
    ['a roll that is free', {}, { roll: { items: 1, removedTokens: 800, cost: 0, gain: 80, reason: 'asked' } }, ['r roll 800, free'], []],
    ['no window', {}, { contextWindow: 0 }, ['Context 41k tokens'], ['free']],
    [
      'a chosen lifetime of the cache',
      {},
      { lifetime: { why: 'five minutes, as you have set', savedTokens: 20_000 } },
      ["The cache's lifetime: five minutes, as you have set; that has saved about $0.06 so far."],
      [],
    ],
    [
      'one that has cost more, without prices',
      {},
      { inputPrice: 0, lifetime: { why: 'an hour for all', savedTokens: -2000 } },
      ["The cache's lifetime: an hour for all; that has cost about 2.0k input tokens more so far."],
      [],
    ],
    [
      'one that has changed nothing yet',
      {},
      { lifetime: { why: 'an hour, as you have set', savedTokens: 0.3 } },
      ["The cache's lifetime: an hour, as you have set."],
      [],
    ],
    ['a lifetime as Pi asks', {}, {}, [], ['lifetime']],
    ['a low share from the cache', {}, { cachedShare: 0.1 }, ['/context why'], []],
  ])('%s', (_name, view, some, has, hasNot) => {
    const text = draw(100, 40, view, some).join('\n')
    for (const part of has) expect(text).toContain(part)
    for (const part of hasNot) expect(text).not.toContain(part)
  })
})

describe('names', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['read', { path: 'src/a.ts' }, 'src/a.ts'],
    ['read', { path: '/project/src/a.ts', offset: 20, limit: 60 }, 'src/a.ts:20-79'],
    ['read', { path: '/project', limit: 10 }, '.:1-10'],
    ['edit', { file_path: '/elsewhere/a.ts' }, '/elsewhere/a.ts'],
    ['bash', { command: 'cd /project && npm test' }, 'npm test'],
    ['bash', { command: 'npm\ntest\t\x1b[2Jx' }, 'npm test [2Jx'],
    ['bash', { command: 'echo \u202etxt.exe' }, 'echo \\u202etxt.exe'],
    ['grep', { pattern: 'fn main', path: 'src' }, '/fn main/ in src'],
    ['read', { path: 'id=0123abcd' }, 'src/a.ts'],
    ['activate', { id: '0123abcd@7' }, 'src/a.ts'],
    ['activate', { id: 'ffffffff' }, 'id=ffffffff'],
    ['todo', { items: [] }, 'todo'],
    ['bash', { command: 7, path: '' }, 'bash'],
  ])('%s %j is called %j', (tool, args, name) => {
    expect(nameOf(tool, args, '/project', new Map([['0123abcd', 'src/a.ts']]))).toBe(name)
  })

  test.each([
    ['src/a.ts', 8, 'src/a.ts'],
    ['packages/server/src/a.ts', 16, '…/src/a.ts'],
    ['packages/server/src/a.ts:20-79', 20, '…/src/a.ts:20-79'],
    ['a-very-long-file-name.ts', 10, 'a-very-lo…'],
    ['npm run build && npm test', 16, 'npm run build &…'],
    ['日本語/日本語日本語', 8, '日本語…'],
  ])('%j in %d columns is %j', (name, width, fitted) => {
    const found = stripVTControlCharacters(fitName(name, width))
    expect(found).toBe(fitted)
    expect(visibleWidth(found)).toBeLessThanOrEqual(width)
  })
})

describe('names that would look the same', () => {
  test.each<[string[], number, string[]]>([
    [['a/x/index.ts', 'a/y/index.ts'], 12, ['a/x/index.ts', 'a/y/index.ts']],
    [['aaaa/bbbb/folder/index.ts', 'aaaa/cccc/folder/index.ts'], 17, ['…/bbbb/…/index.ts', '…/cccc/…/index.ts']],
    [['aaaa/x/cccccc/index.ts', 'bbbb/x/cccccc/index.ts'], 16, ['aaaa/…/index.ts', 'bbbb/…/index.ts']],
    [['same/folder/index.ts', 'same/folder/index.ts'], 10, ['…/index.ts', '…/index.ts']],
    [['npm run build && npm test', 'npm run build && npm pack'], 10, ['npm r…test', 'npm r…pack']],
    [['sed -n 1,90p src/a-1.ts | head', 'sed -n 1,90p src/a-12.ts | head'], 18, ['sed -n …1.ts | he…', 'sed -n …12.ts | h…']],
    [['npm test', 'npm test', 'npm test -- --run the-store'], 8, ['npm test', 'npm test', 'npm tes…']],
    [['字字字字 字字字一', '字字字字 字字字二'], 9, ['字字字字…', '字字字字…']],
  ])('%j in %d columns are %j', (names, width, fitted) => {
    expect(fitNames(names, width).map(stripVTControlCharacters)).toEqual(fitted)
  })
})

describe('parts of a whole', () => {
  test('random parts of a text show the same sum as the whole', () => {
    const random = randomFrom(7)
    for (let round = 0; round < 500; round += 1) {
      const parts = Array.from({ length: 1 + random.below(7) }, () => (random.below(3) === 0 ? random.below(50) : random.below(90_000)))
      const total = parts.reduce((sum, part) => sum + part, 0)
      const units = random.below(200)
      const counts = apportion(parts, units)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(total === 0 ? 0 : units)
      for (const [index, count] of counts.entries()) {
        expect(Math.abs(count - (total === 0 ? 0 : (units * parts[index]!) / total))).toBeLessThan(1)
      }
      const cells = apportion(parts, Math.max(units, parts.length), 1)
      for (const [index, count] of cells.entries()) expect(count > 0).toBe(total > 0 && parts[index]! > 0)
      const value = (text: string): number => (text.startsWith('<') ? 0 : Number(text.replace(/k$/, '')))
      const shown = shortParts(parts, total).map(value)
      expect(shown.reduce((sum, one) => sum + one, 0)).toBeCloseTo(value(short(total)), 6)
    }
  })

  test('a part too small to count is not shown as nothing', () => {
    expect(percentParts([990, 10, 0], 21)).toEqual(['21 %', '<1 %', '0 %'])
    expect(shortParts([40_000, 300], 40_300)).toEqual(['40k', '<1k'])
  })
})

test('keys that were typed before the screen has appeared press nothing', async () => {
  let panel!: Component
  let isClosed = false
  const done = (): void => void (isClosed = true)
  const tui = { terminal: { rows: 40 }, requestRender: () => {} }
  const keys = { matches: (data: string, name: string) => data === '\r' && name === 'tui.select.confirm' }
  const custom = async (make: (...args: unknown[]) => Component): Promise<void> => void (panel = make(tui, theme, keys, done))
  // Whatever acted on the session would need it, and fail.
  await showPanel({} as never, { ui: { custom } } as never, report)
  const typed = ['d', 'r', 'p', 'b', 'u', 'o', '/', 'x', '\r', '?', 'q']
  const all = (): void => typed.forEach((key) => panel.handleInput?.(key))
  const shown = (): string => panel.render(100).map(stripVTControlCharacters).join('\n')
  all()
  const before = shown()
  // Keys are named once they do something.
  expect(before).not.toContain('esc close')
  // Keys that have waited in the terminal come between the drawing and the next turns of the loop.
  all()
  await new Promise((resolve) => setImmediate(resolve))
  all()
  expect([shown(), isClosed]).toEqual([before, false])
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  expect(shown()).toBe(draw(100, 37).join('\n'))
  panel.handleInput?.('?')
  expect(shown()).toBe(drawHelp(100, 37, theme).map(stripVTControlCharacters).join('\n'))
  panel.handleInput?.('q')
  panel.handleInput?.('q')
  expect(isClosed).toBe(true)
})
