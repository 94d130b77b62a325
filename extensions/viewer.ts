/** A full-screen view of an output opened from `/context`: scrolls, and switches between the texts that there are of it. */
import type { KeybindingsManager, Theme } from '@earendil-works/pi-coding-agent'
import { matchesKey, stripTerminalSequences, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import type { StateContents } from './contents.ts'
import { fitName } from './names.ts'

/** Longer lines are divided, so that a file of one line can also be scrolled. In UTF-16 units. */
const LONGEST_LINE = 1000

/** Rows for the title, what the text is, the keys and two borders. */
const OTHER_ROWS = 5

/** The view of one output. */
export class Viewer {
  readonly #contents: StateContents
  /** The texts as lines; split when first shown. */
  readonly #lines: (string[] | undefined)[]
  #current = 0
  #first: Place = { line: 0, row: 0 }
  /** Rows for text, and the columns, when it was last drawn. */
  #rows = 1
  #columns = 80

  constructor(contents: StateContents) {
    this.#contents = contents
    this.#lines = contents.texts.map(() => undefined)
  }

  /** Handles a key. Returns false if the key closes the view. */
  key(data: string, keys: KeybindingsManager): boolean {
    if (data === 'q' || keys.matches(data, 'tui.select.cancel')) return false
    const move = moveOf(data, keys, this.#rows)
    if (move !== undefined) this.#move(move)
    else if (matchesKey(data, 'tab')) this.#switch(1)
    else if (matchesKey(data, 'shift+tab')) this.#switch(-1)
    return true
  }

  /** Draws the view in at most `height` lines. */
  draw(width: number, height: number, theme: Theme): string[] {
    this.#columns = Math.max(1, width - 1)
    this.#rows = Math.max(1, height - OTHER_ROWS)
    this.#move(0)
    const { name, about, texts } = this.#contents
    const border = theme.fg('border', '─'.repeat(Math.max(1, width)))
    const { rows, last } = this.#visible()
    const count = this.#text().length
    const place = `lines ${count === 0 ? 0 : this.#first.line + 1}-${last} of ${count}`
    const label = texts[this.#current]?.label ?? ''
    const others = texts.length > 1 ? ` (${this.#current + 1}/${texts.length}, tab)` : ''
    return [
      border,
      theme.bold(theme.fg('accent', fitName(name, this.#columns))),
      theme.fg('muted', about),
      ...rows.map((row) => (label.startsWith('change') ? coloured(row, theme) : theme.fg('text', row))),
      theme.fg('dim', `${label}${others} · ${place} · esc back`),
      border,
    ].map((line) => truncateToWidth(line === border ? line : ` ${line}`, width, '…'))
  }

  #text(): string[] {
    return (this.#lines[this.#current] ??= linesOf(this.#contents.texts[this.#current]?.text ?? ''))
  }

  /** The rows that fit, and the number of the last line that has one. */
  #visible(): { rows: string[]; last: number } {
    const rows: string[] = []
    const lines = this.#text()
    let { line, row } = this.#first
    for (; line < lines.length && rows.length < this.#rows; line += 1) {
      rows.push(...this.#wrapped(line).slice(row))
      row = 0
    }
    return { rows: rows.slice(0, this.#rows), last: line }
  }

  #wrapped(line: number): string[] {
    return wrapped(this.#text()[line] ?? '', this.#columns)
  }

  /** Moves by rows, at most to the start or until the end is on the screen. */
  #move(by: number): void {
    const end = this.#back({ line: this.#text().length, row: 0 }, this.#rows)
    let { line, row } = this.#first
    if (by === -Infinity) [line, row] = [0, 0]
    else if (by < 0) ({ line, row } = this.#back({ line, row }, -by))
    // After a change of the width, a line may have fewer rows than before.
    else row += by
    while (line < end.line && row >= this.#wrapped(line).length) {
      row -= this.#wrapped(line).length
      line += 1
    }
    const isBehind = line > end.line || (line === end.line && row > end.row)
    this.#first = isBehind ? end : { line, row }
  }

  /** The place that many rows before another one; the start if there are fewer. */
  #back({ line, row }: Place, by: number): Place {
    let left = by - row
    while (left > 0 && line > 0) {
      line -= 1
      left -= this.#wrapped(line).length
    }
    return { line, row: Math.max(0, -left) }
  }

  #switch(by: number): void {
    const count = this.#contents.texts.length
    this.#current = (this.#current + by + count) % count
    this.#first = { line: 0, row: 0 }
  }
}

/** A row of a text: the line, from 0, and which of its rows, if it is wrapped. */
interface Place {
  line: number
  row: number
}

/**
 * By how many rows a key moves: arrows, `j` and `k`, pages, `home` and `g` to the start, `end` and `G` to the end; undefined
 * for any other key.
 */
export function moveOf(data: string, keys: KeybindingsManager, page: number): number | undefined {
  if (data === 'k' || keys.matches(data, 'tui.select.up')) return -1
  if (data === 'j' || keys.matches(data, 'tui.select.down')) return 1
  if (keys.matches(data, 'tui.select.pageUp')) return -page
  if (keys.matches(data, 'tui.select.pageDown') || data === ' ') return page
  if (data === 'g' || matchesKey(data, 'home')) return -Infinity
  if (data === 'G' || matchesKey(data, 'end')) return Infinity
  return undefined
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.flatMap((line) => {
    // Texts may contain anything, even control sequences for the terminal.
    const plain = stripTerminalSequences(line)
      .replaceAll('\t', '    ')
      .replaceAll(/\p{Cc}/gu, '')
    if (plain.length <= LONGEST_LINE) return [plain]
    const parts: string[] = []
    for (let at = 0; at < plain.length; at += LONGEST_LINE) parts.push(plain.slice(at, at + LONGEST_LINE))
    return parts
  })
}

/** A line in rows of at most `columns` columns. */
function wrapped(line: string, columns: number): string[] {
  if (line.length <= columns && visibleWidth(line) <= columns) return [line]
  const rows: string[] = []
  let [row, width] = ['', 0]
  for (const { segment } of GRAPHEMES.segment(line)) {
    const size = visibleWidth(segment)
    if (width + size > columns && row !== '') {
      rows.push(row)
      ;[row, width] = ['', 0]
    }
    row += segment
    width += size
  }
  return [...rows, row]
}

const GRAPHEMES = new Intl.Segmenter()

function coloured(line: string, theme: Theme): string {
  if (line.startsWith('+')) return theme.fg('success', line)
  if (line.startsWith('-')) return theme.fg('error', line)
  return theme.fg(line.startsWith('@@') ? 'accent' : 'text', line)
}
