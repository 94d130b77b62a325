/**
 * The screen of `/context` as lines of text: what fills the window, what was saved, and the outputs with the keys that act
 * on them. It adapts to the terminal's height: if there are few rows, the least important parts are left out first.
 */
import { homedir } from 'node:os'
import type { Theme } from '@earendil-works/pi-coding-agent'
import { stripTerminalSequences, truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { fitNames } from './names.ts'
import { isInWindow } from './outputs.ts'
import type { Output } from './outputs.ts'
import type { Report } from './report.ts'
import { apportion, percentParts, short, shortParts } from './shares.ts'
import { wrapped } from '../lib/ui/index.ts'
import { callsBack } from '../lib/models/index.ts'
import { costLine, heldLine, lifetimeLine, receiptLine, rollHint, savedLine } from './ui.ts'

/** The parts of the screen that are drawn besides the report. */
export interface View {
  /** The outputs that pass the filter. */
  rows: readonly Output[]
  /** The position of the selected one. */
  selected: number
  /** The filter line; undefined if no filter is set or being typed. */
  filter: string | undefined
  /** A sentence that says what the last key did; may be empty. */
  message: string
  /** False until keys do something; then they are named. */
  takesKeys?: boolean
}

/** The screen, and how many outputs it shows at once. */
interface Screen {
  lines: string[]
  page: number
}

/** The number of outputs that are always shown, and of those that get their rows before the optional parts of the screen. */
const FEWEST_ROWS = 2
const ENOUGH_ROWS = 8

/** The number of shown receipts, the newest ones, and the text before them. */
const RECEIPTS = 3
const ROLL = 'Last roll:'

/** The widths from which a row shows the age (and the legend shows tokens), the tool, and the turn and the id. */
const WIDTH_FOR_AGE = 78
const WIDTH_FOR_TOOL = 96
const WIDTH_FOR_ID = 118

type Color = Parameters<Theme['fg']>[0]

/** The characters that draw the parts of the bar, which differ by shade if there are no colours. */
const PARTS: Record<string, [cell: string, color: Color]> = {
  'tool outputs': ['█', 'accent'],
  'active contents': ['█', 'accent'],
  messages: ['▓', 'success'],
  'tool calls': ['▒', 'warning'],
  'system prompt': ['░', 'muted'],
  'metadata pool': ['▄', 'warning'],
  references: ['▪', 'muted'],
}
const FREE = '·'

/** Draws the screen, in at most `height` lines if possible. */
export function drawScreen(report: Report, view: View, width: number, height: number, theme: Theme): Screen {
  const border = theme.fg('border', '─'.repeat(Math.max(1, width)))
  const inner = Math.max(1, width - 1)
  const keys = wrapItems(hintsOf(report), inner, theme.fg('dim', ' · '), theme)
  const hints = view.takesKeys === false ? keys.map(() => '') : keys
  const message = view.message === '' ? [] : wrapTextWithAnsi(view.message, inner)
  const filter = view.filter === undefined ? [] : [`${view.filter}  ${theme.fg('muted', countOf(view))}`]
  const legend = legendLines(report, inner, theme)
  const saved = [theme.fg('text', savedLine(report))]
  // If the legend does not fit, the smallest parts of the window matter least.
  const needed = 4 + legend.length + saved.length + filter.length + FEWEST_ROWS + 1 + message.length + hints.length
  legend.splice(Math.max(1, legend.length - Math.max(0, needed - height)))
  const top = [border, ...titleLines(report, inner, theme), ...legend]
  const bottom = [...message, ...hints, border]
  // If not all outputs are shown, their count takes a line.
  const counted = filter.length === 0
  const wanted = Math.max(1, Math.min(view.rows.length, ENOUGH_ROWS)) + (counted && view.rows.length > ENOUGH_ROWS ? 1 : 0)
  let free = height - top.length - saved.length - filter.length - bottom.length - wanted
  const take = (lines: string[]): string[] => {
    if (lines.length === 0 || free < lines.length) return []
    free -= lines.length
    return lines
  }
  const cost = take(
    asList(costLine(report))
      .flatMap((one) => wrapped(one, inner))
      .map((line) => theme.fg('muted', line)),
  )
  const lifetime = take(
    asList(lifetimeLine(report))
      .flatMap((one) => wrapped(one, inner))
      .map((line) => theme.fg('muted', line)),
  )
  const detail = take(detailOf(view, inner).map((line) => theme.fg('muted', `  ${line}`)))
  const [above, below] = [take(['']), take([''])]
  const receipts = report.receipts.slice(-RECEIPTS).reverse()
  const isNarrow = receipts.some((receipt) => visibleWidth(receiptLine(receipt)) > inner - ROLL.length - 1)
  const rolls = receipts.flatMap((receipt, index) =>
    take([theme.fg('muted', `${index === 0 ? ROLL : ' '.repeat(ROLL.length)} ${receiptLine(receipt, isNarrow)}`)]),
  )
  const held = take(
    asList(report.held)
      .flatMap((one) => wrapped(heldLine(one), inner))
      .map((line) => theme.fg('muted', line)),
  )
  const store = take([theme.fg('muted', `Store: ${report.store.replace(homedir(), '~')}`)])
  const hint = take(asList(report.storeHint).map((line) => theme.fg('warning', line)))
  const beforeHints = take([''])
  const others =
    top.length + saved.length + cost.length + lifetime.length + rolls.length + held.length + store.length + hint.length + above.length + below.length
  const left = height - others - filter.length - detail.length - beforeHints.length - bottom.length
  const shown = Math.max(FEWEST_ROWS, left - (counted && view.rows.length > left ? 1 : 0))
  const list = listLines(view, inner, shown, theme)
  const lines = [
    ...top,
    ...above,
    ...saved,
    ...cost,
    ...lifetime,
    ...rolls,
    ...held,
    ...store,
    ...hint,
    ...below,
    ...filter,
    ...list,
    ...detail,
    ...beforeHints,
    ...bottom,
  ]
  return {
    lines: lines.map((line) => truncateToWidth(line === border ? line : ` ${line}`, width, '…')),
    page: shown,
  }
}

/** Draws the page of keys, in at most `height` lines. */
export function drawHelp(width: number, height: number, theme: Theme): string[] {
  const border = theme.fg('border', '─'.repeat(Math.max(1, width)))
  const column = Math.max(...KEYS.map(([key]) => visibleWidth(key)))
  const keys = KEYS.map(([key, does]) => ` ${theme.fg('accent', pad(key, column))}  ${theme.fg('text', does)}`)
  return [border, ...keys.slice(0, height - 3), theme.fg('dim', ' any key goes back'), border].map((line) => truncateToWidth(line, width, '…'))
}

/** The keys of the list and of an opened output, and what the words of a row mean. */
const KEYS: readonly [key: string, does: string][] = [
  ['↑ ↓ k j', 'up, down'],
  ['pgup pgdn', 'a screen up, down'],
  ['home g', 'to the first one'],
  ['end G', 'to the last one'],
  ['enter', "open: its text, what the model sees, its file's changes (tab)"],
  ['/', 'filter by name, tool, id or state: pinned, may collapse, line'],
  ['p', 'pin: it never collapses; its text returns if it has collapsed'],
  ['d', 'drop: the next roll may collapse it'],
  ['b', 'bring back: its text goes to the model with your next message'],
  ['r', 'roll: collapse everything that is old enough now'],
  ['u', 'undo the last roll'],
  ['o', 'collapsing off or on'],
  ['esc q', 'close'],
  ['full', 'the model sees all of it'],
  ['excerpt', 'the model sees its beginning and its end'],
  ['reference', 'the model sees one line, which says what it came to'],
  ['line', 'its whole call is one line behind another output'],
  ['returning', 'its text goes to the model with your next message'],
  ['brought back', 'its text is in the conversation again'],
  ['may collapse', 'the model has not needed it for a while; r collapses it'],
]

function titleLines(report: Report, width: number, theme: Theme): string[] {
  const { contextTokens, contextWindow, off } = report
  const of = contextWindow > 0 ? ` of ${short(contextWindow)} tokens (${windowPercent(report)} %)` : ' tokens'
  const left = theme.bold(theme.fg('accent', 'Context')) + ` ${short(contextTokens)}${of}`
  const right = off ? theme.fg('warning', 'collapsing is off') : theme.fg('muted', 'collapsing is on')
  const gap = width - visibleWidth(left) - visibleWidth(right)
  const title = gap < 2 ? left : left + ' '.repeat(gap) + right
  return [title, barLine(report, width, theme)]
}

/** One bar for the whole window, or for the used part if the window is unknown. */
function barLine({ shares, contextTokens, contextWindow }: Report, width: number, theme: Theme): string {
  const used = contextWindow > 0 ? Math.min(1, contextTokens / contextWindow) : 1
  const cells = Math.min(width, Math.max(Math.round(width * used), shares.length))
  const counts = apportion(
    shares.map((share) => share.tokens),
    cells,
    1,
  )
  const bar = shares.map(({ name }, index) => {
    const [cell, color] = lookOf(name)
    return theme.fg(color, cell.repeat(counts[index] ?? 0))
  })
  return bar.join('') + theme.fg('dim', FREE.repeat(width - cells))
}

/** The legend of the bar. Its figures add up to those of the title. */
function legendLines(report: Report, width: number, theme: Theme): string[] {
  const { shares, contextTokens, contextWindow } = report
  const tokens = shares.map((share) => share.tokens)
  const sizes = shortParts(tokens, contextTokens)
  const percents = percentParts(tokens, contextWindow > 0 ? windowPercent(report) : 100)
  const figures = (size: string, percent: string): string => (width < WIDTH_FOR_AGE ? percent : `${size} ${percent}`)
  const items = shares.map(({ name }, index) => {
    const [cell, color] = lookOf(name)
    return `${theme.fg(color, cell)} ${name} ${theme.fg('muted', figures(sizes[index] ?? '', percents[index] ?? ''))}`
  })
  if (contextWindow > contextTokens) {
    const free = figures(short(contextWindow - contextTokens), `${100 - windowPercent(report)} %`)
    items.push(theme.fg('dim', `${FREE} free ${free}`))
  }
  return wrapItems(items, width, '  ', theme)
}

function windowPercent({ contextTokens, contextWindow }: Report): number {
  return Math.round((100 * contextTokens) / contextWindow)
}

function lookOf(name: string): [cell: string, color: Color] {
  return PARTS[name] ?? ['▪', 'muted']
}

function listLines(view: View, width: number, shown: number, theme: Theme): string[] {
  const { rows, selected, filter } = view
  if (rows.length === 0) {
    const why = filter === undefined ? 'No tool output on this branch yet.' : 'No output matches the filter.'
    return [theme.fg('muted', `  ${why}`)]
  }
  const columns = columnsOf(rows, width)
  // As in Pi's own lists, the selected row stays in the middle.
  const first = Math.max(0, Math.min(selected - Math.floor(shown / 2), rows.length - shown))
  const visible = rows.slice(first, first + shown)
  const names = fitNames(
    visible.map((row) => row.name),
    columns.name,
  )
  const lines = visible.map((row, index) => {
    const chosen = first + index === selected
    const text = (chosen ? '→ ' : '  ') + rowText(row, names[index] as string, columns, width - 2)
    if (chosen) return theme.fg('accent', text)
    return isInWindow(row) ? text : theme.fg('muted', text)
  })
  if (filter === undefined && rows.length > shown) lines.push(theme.fg('muted', `  ${countOf(view)}`))
  return lines
}

/** The position of the cursor in the list, as in Pi's own lists. */
function countOf({ rows, selected }: View): string {
  return `(${Math.min(selected + 1, rows.length)}/${rows.length})`
}

/** The columns that fit beside the names, with their widths. */
interface Columns {
  name: number
  form: number
  age: number
  turn: number
  tool: number
  id: number
  marks: number
}

function columnsOf(rows: readonly Output[], width: number): Columns {
  const widest = (texts: string[]): number => Math.max(0, ...texts.map(visibleWidth))
  const [form, marks] = [widest(rows.map(formOf)), widest(rows.map(marksOf))]
  const age = width >= WIDTH_FOR_AGE ? widest(rows.map(ageOf)) : 0
  const turn = width >= WIDTH_FOR_ID ? widest(rows.map(turnOf)) : 0
  const tool = width >= WIDTH_FOR_TOOL ? widest(rows.map((row) => row.tool)) : 0
  const id = width >= WIDTH_FOR_ID ? widest(rows.map((row) => row.id)) : 0
  const others = [form, SIZE_WIDTH, age, turn, tool, id, marks].filter((one) => one > 0)
  const room = width - 2 - others.reduce((sum, one) => sum + one + 2, 0)
  return { name: Math.max(8, Math.min(room, widest(rows.map((row) => row.name)))), form, age, turn, tool, id, marks }
}

/** The width of the column for the size. */
const SIZE_WIDTH = 5

/** The part of an output that the model sees, in a word or two. */
export function formOf({ form, back }: Output): string {
  if (back === undefined) return form
  return back === 'next' ? 'returning' : 'brought back'
}

function rowText(row: Output, name: string, columns: Columns, width: number): string {
  // The size of a collapsed output is that of the text that b brings back.
  const size = short(isInWindow(row) ? row.tokens : row.whole)
  const cells = [pad(name, columns.name), pad(formOf(row), columns.form), size.padStart(SIZE_WIDTH)]
  if (columns.age > 0) cells.push(ageOf(row).padStart(columns.age))
  if (columns.turn > 0) cells.push(pad(turnOf(row), columns.turn))
  // Don't show the tool's name twice.
  if (columns.tool > 0) cells.push(pad(row.tool === row.name ? '' : row.tool, columns.tool))
  if (columns.id > 0) cells.push(pad(row.id, columns.id))
  if (columns.marks > 0) cells.push(marksOf(row))
  return stripTerminalSequences(truncateToWidth(cells.join('  ').trimEnd(), width, '…'))
}

function marksOf({ failed, pinned, mayCollapse }: Output): string {
  return [failed ? 'failed' : '', pinned ? 'pinned' : mayCollapse ? 'may collapse' : ''].filter((mark) => mark !== '').join(', ')
}

function ageOf({ callsAgo }: Output): string {
  if (callsAgo === undefined) return ''
  return callsAgo === 0 ? 'just now' : callsBack(callsAgo)
}

function turnOf({ turn }: Output): string {
  return turn === 0 ? '' : `turn ${turn}`
}

/** Details of the selected output that don't fit into its row, in lines. */
function detailOf({ rows, selected }: View, width: number): string[] {
  const row = rows[selected]
  if (row === undefined) return []
  const facts = [`${row.tool} id=${row.id}`, turnOf(row), width < WIDTH_FOR_AGE ? ageOf(row) : ''].filter((fact) => fact !== '')
  return wrapped(`${facts.join(', ')}; ${fateOf(row)}`, width - 2)
}

/** The future of an output, and the effect of a key. */
function fateOf({ pinned, form, whole, back, mayCollapse }: Output): string {
  if (back !== undefined) return back === 'next' ? 'its text goes to the model with your next message' : 'its text is in the conversation again'
  if (form === 'reference') return `the model sees one line; b brings ${short(whole)} tokens back`
  if (form === 'line') return `its call is one line behind another output; b brings ${short(whole)} tokens back`
  if (pinned) return 'pinned: it never collapses'
  return mayCollapse ? 'the model has not needed it for a while: r collapses it' : 'it stays for now'
}

/** The keys, which are always the same. */
function hintsOf({ roll, off, inputPrice }: Report): [key: string, does: string][] {
  return [
    ['enter', 'open'],
    ['/', 'filter'],
    ['p', 'pin'],
    ['d', 'drop'],
    ['b', 'bring back'],
    ['r', roll === undefined ? 'roll' : rollHint(roll, inputPrice)],
    ['u', 'undo'],
    ['o', off ? 'on' : 'off'],
    ['?', 'keys'],
    ['esc', 'close'],
  ]
}

/** Wraps items to lines without breaking any item. */
function wrapItems(items: readonly (string | [string, string])[], width: number, gap: string, theme: Theme): string[] {
  const lines: string[] = []
  for (const item of items) {
    const text = typeof item === 'string' ? item : theme.fg('dim', item[0]) + theme.fg('muted', item[1] === '' ? '' : ` ${item[1]}`)
    const last = lines.at(-1)
    if (last === undefined || visibleWidth(last) + visibleWidth(gap) + visibleWidth(text) > width) lines.push(text)
    else lines[lines.length - 1] = last + gap + text
  }
  return lines
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - visibleWidth(text)))
}

function asList<T>(line: T | undefined): T[] {
  return line === undefined ? [] : [line]
}
