/** The view of an opened output without Pi: what it shows, and how it scrolls. */
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { KeybindingsManager, Theme } from '@earendil-works/pi-coding-agent'
import { visibleWidth } from '@earendil-works/pi-tui'
import { Viewer } from '../../extensions/viewer.ts'

const theme = { fg: (_color: string, text: string) => text, bold: (text: string) => text } as unknown as Theme
const NAMES: Record<string, string> = {
  'tui.select.up': '\x1b[A',
  'tui.select.down': '\x1b[B',
  'tui.select.pageUp': '\x1b[5~',
  'tui.select.pageDown': '\x1b[6~',
  'tui.select.cancel': '\x1b',
}
const keys = { matches: (data: string, name: string) => NAMES[name] === data } as unknown as KeybindingsManager

const hundred = Array.from({ length: 100 }, (_, index) => `line ${index + 1}`).join('\n') + '\n'
const viewer = (...texts: string[]): Viewer =>
  new Viewer({
    name: 'src/a.ts',
    about: 'read id=0123abcd; 100 lines',
    texts: texts.map((text, index) => ({ label: `text ${index + 1}`, text })),
  })

function draw(view: Viewer, width = 60, height = 15): string[] {
  return view.draw(width, height, theme).map(stripVTControlCharacters)
}

function first(view: Viewer): string | undefined {
  return draw(view)[3]?.trim()
}

describe('an opened output', () => {
  test('shows its name, its kind, and as many lines as fit', () => {
    const lines = draw(viewer(hundred))
    expect(lines).toHaveLength(15)
    expect(lines[1]).toContain('src/a.ts')
    expect(lines[2]).toContain('id=0123abcd')
    expect(lines.slice(3, -2).map((line) => line.trim())).toEqual(Array.from({ length: 10 }, (_, n) => `line ${n + 1}`))
    expect(lines.at(-2)).toContain('lines 1-10 of 100')
  })

  test.each([
    ['j', 'line 2'],
    ['jjk', 'line 2'],
    ['k', 'line 1'],
    ['G', 'line 91'],
    ['Gj', 'line 91'],
    ['Gg', 'line 1'],
    [' ', 'line 11'],
    ['\x1b[6~', 'line 11'],
    ['G\x1b[5~', 'line 81'],
    ['\x1b[F', 'line 91'],
    ['\x1b[F\x1b[H', 'line 1'],
    ['\x1b[B', 'line 2'],
  ])('after %j the first line is %s', (typed, line) => {
    const view = viewer(hundred)
    draw(view)
    for (const key of typed.match(/\x1b\[\w~?|[^]/g) ?? []) expect(view.key(key, keys)).toBe(true)
    expect(first(view)).toBe(line)
  })

  test('tab goes around its texts', () => {
    const view = viewer('one\n', 'two\n', 'three\n')
    expect(first(view)).toBe('one')
    const seen = ['\t', '\t', '\t', '\x1b[Z'].map((key) => {
      view.key(key, keys)
      return first(view)
    })
    expect(seen).toEqual(['two', 'three', 'one', 'three'])
    expect(draw(view).at(-2)).toContain('(3/3, tab)')
  })

  test.each(['q', '\x1b'])('%j closes it', (key) => {
    expect(viewer(hundred).key(key, keys)).toBe(false)
  })

  test.each([
    ['long lines', `${'x'.repeat(150)}\nnext\n`],
    ['a file of one line', 'y'.repeat(100_000)],
    ['wide characters', `${'日本語'.repeat(200)}\n`],
    ['control sequences and tabs', '\x1b[2J\x1b]0;title\x07\tred \x1b[31mtext\x1b[0m\r\n'],
    ['nothing', ''],
    ['empty lines', '\n\n\n'],
  ])('%s stay within the screen', (_name, text) => {
    for (const [width, height] of [
      [20, 8],
      [60, 15],
      [200, 60],
    ] as const) {
      const view = viewer(text)
      for (const key of ['', 'G', 'g', 'j']) {
        view.key(key, keys)
        const raw = view.draw(width, height, theme)
        expect(raw.length).toBeLessThanOrEqual(height)
        for (const line of raw) {
          expect(visibleWidth(line)).toBeLessThanOrEqual(width)
          expect(stripVTControlCharacters(line)).not.toMatch(/\p{Cc}/u)
          expect(line).not.toMatch(/\x1b\[2J|\x1b\]/)
        }
      }
    }
  })

  test('a long line is wrapped, and the end of a file of one line can be reached', () => {
    const view = viewer(`${'x'.repeat(150)}end\n`)
    expect(draw(view).join('').replaceAll(/\s/g, '')).toContain('xend')
    const large = viewer(`${'y'.repeat(50_000)}end`)
    draw(large)
    large.key('G', keys)
    expect(draw(large).join('').replaceAll(/\s/g, '')).toContain('yend')
  })
})
