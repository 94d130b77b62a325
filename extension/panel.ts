/** The report as a screen in the terminal, with keys to pin, drop and bring back. */
import type { ExtensionCommandContext, Theme } from '@earendil-works/pi-coding-agent'
import { Key, matchesKey, stripTerminalSequences, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import type { Component, TUI } from '@earendil-works/pi-tui'
import type { SetChange } from '../index.js'
import { NOTICE } from './boundary.ts'
import { sentence } from './guard.ts'
import type { Host } from './host.ts'
import { keep } from './keep.ts'
import { makeReport } from './report.ts'
import type { Report } from './report.ts'
import { costLines, receiptLine, shareLines, short } from './ui.ts'

/** Rows of outputs that are shown at once; fewer where the terminal is low, but never less than three. */
const ROWS = 12
const FEWEST_ROWS = 3

/** Rows that Pi's own footer takes. */
const PI_ROWS = 4

/** Receipts that are shown, the newest; fewer where so many outputs would not be seen for them. */
const RECEIPTS = 3
const ROWS_BEFORE_RECEIPTS = 6

/** Shows the panel until the person closes it. */
export async function showPanel(host: Host, ctx: ExtensionCommandContext, report: Report): Promise<void> {
  await ctx.ui.custom<void>((tui, theme, _keys, done) => new Panel(host, ctx, report, tui, theme, done))
}

/** A text in at most `width` columns: paths differ at their ends. */
export function cutInside(text: string, width: number): string {
  if (visibleWidth(text) <= width || width < 12) return text
  const characters = [...text]
  let tail = ''
  while (visibleWidth(tail) < Math.floor(width / 2)) tail = `${characters.pop() ?? ''}${tail}`
  // Without the codes around the mark, which would end the row's colour there.
  return `${stripTerminalSequences(truncateToWidth(text, width - visibleWidth(tail), '…'))}${tail}`
}

/** An output in the list. */
interface Row {
  id: string
  /** Size, name and tool. */
  head: string
  /** What it is about; cut in the middle where it is too long. */
  about: string
  pinned: boolean
  collapsed: boolean
}

class Panel implements Component {
  readonly #host: Host
  readonly #ctx: ExtensionCommandContext
  readonly #tui: TUI
  readonly #theme: Theme
  readonly #done: () => void
  #report: Report
  #rows: Row[]
  #selected = 0
  #message = ''
  #busy = false

  constructor(
    host: Host,
    ctx: ExtensionCommandContext,
    report: Report,
    tui: TUI,
    theme: Theme,
    done: () => void,
  ) {
    this.#host = host
    this.#ctx = ctx
    this.#report = report
    this.#rows = rowsOf(report)
    this.#tui = tui
    this.#theme = theme
    this.#done = done
  }

  invalidate(): void {
    // Nothing is kept between two renderings.
  }

  handleInput(data: string): void {
    if (matchesKey(data, Key.escape) || data === 'q' || matchesKey(data, Key.ctrl('c'))) return this.#done()
    this.#message = ''
    if (matchesKey(data, Key.up)) this.#move(-1)
    else if (matchesKey(data, Key.down)) this.#move(1)
    else if (data === 'p') void this.#act((row) => this.#pin(row))
    else if (data === 'd') void this.#act((row) => this.#drop(row))
    else if (data === 'b') void this.#act((row) => this.#bringBack(row))
    this.#tui.requestRender()
  }

  render(width: number): string[] {
    const theme = this.#theme
    const { contextTokens, contextWindow, staleTokens, collapsed, off } = this.#report
    const of = contextWindow > 0 ? ` of ${short(contextWindow)}` : ''
    const title = `Context  ${short(contextTokens)}${of} tokens${off ? ' · off' : ''}`
    const stale = staleTokens > 0 ? `, ${short(staleTokens)} tokens wait for a roll` : ''
    const above = [
      theme.fg('accent', theme.bold(title)),
      '',
      ...shareLines(this.#report),
      '',
      theme.fg(
        'accent',
        `Outputs: ${this.#rows.length - collapsed.length} in sight, ${collapsed.length} collapsed${stale}`,
      ),
    ]
    const costs = ['', ...costLines(this.#report)]
    const end = [
      theme.fg('muted', `Store: ${this.#report.store}`),
      '',
      this.#message === ''
        ? theme.fg('dim', '↑↓ choose · p pin · d drop · b bring back · esc close')
        : this.#message,
    ]
    const free = this.#tui.terminal.rows - above.length - costs.length - end.length - PI_ROWS
    const most = Math.max(0, Math.min(RECEIPTS, free - ROWS_BEFORE_RECEIPTS))
    const receipts = most === 0 ? [] : this.#report.receipts.slice(-most)
    const below = [...costs, ...receipts.map((receipt) => theme.fg('muted', `  ${receiptLine(receipt)}`)), ...end]
    const shown = Math.max(FEWEST_ROWS, Math.min(ROWS, free - receipts.length))
    const first = Math.max(0, Math.min(this.#selected - shown + 1, this.#rows.length - shown))
    const rows = this.#rows.slice(first, first + shown).map((row, index) => this.#row(row, first + index, width))
    return [...above, ...rows, ...below].map((line) => truncateToWidth(line, width))
  }

  #row(row: Row, index: number, width: number): string {
    const chosen = index === this.#selected
    const head = `${chosen ? '>' : ' '} ${row.pinned ? '*' : ' '} ${row.head}`
    const text = head + cutInside(row.about, width - visibleWidth(head))
    if (chosen) return this.#theme.fg('accent', text)
    return row.collapsed ? this.#theme.fg('dim', text) : text
  }

  #move(by: number): void {
    this.#selected = Math.max(0, Math.min(this.#rows.length - 1, this.#selected + by))
  }

  async #act(action: (row: Row) => Promise<string>): Promise<void> {
    const row = this.#rows[this.#selected]
    if (row === undefined || this.#busy) return
    this.#busy = true
    try {
      this.#message = await action(row)
      const { boundary } = this.#host
      if (boundary !== undefined) await keep(this.#host, boundary)
      this.#report = await makeReport(this.#host, this.#ctx)
      this.#rows = rowsOf(this.#report)
      this.#move(0)
    } catch (error) {
      this.#message = this.#theme.fg('error', sentence(error))
    } finally {
      this.#busy = false
      this.#tui.requestRender()
    }
  }

  async #pin(row: Row): Promise<string> {
    const manager = this.#host.manager()
    const change = row.pinned ? await manager.unpin(row.id) : await manager.pin(row.id)
    return told(change, row.pinned ? `${row.id} is not pinned any more.` : `${row.id} is pinned: it does not collapse.`)
  }

  async #drop(row: Row): Promise<string> {
    const change = await this.#host.manager().deactivate(row.id)
    const then = row.pinned ? 'it stays as long as it is pinned' : 'it collapses where that pays'
    return told(change, `${row.id} is dropped: ${then}.`)
  }

  /** At the end of the conversation, where it costs its own tokens and nothing that is cached. */
  async #bringBack(row: Row): Promise<string> {
    const manager = this.#host.manager()
    const returning = this.#host.boundary?.returning
    if (returning?.has(row.id) === true) return `${row.id} goes to the model with your next message already.`
    const change = await manager.activate(row.id)
    if (!change.ok) return change.message
    if (broughtBack(this.#ctx, row.id)) return `${row.id} is active; its text was brought back already.`
    if (change.content === undefined) return `${row.id} is active; its text is in the conversation.`
    const message = { customType: NOTICE, content: `id=${row.id}\n${change.content}`, display: false }
    this.#host.pi.sendMessage(message, { deliverAs: 'nextTurn' })
    returning?.add(row.id)
    return `${row.id} goes to the model with your next message.`
  }
}

/** Whether a message of the conversation has an output's text. */
function broughtBack(ctx: ExtensionCommandContext, id: string): boolean {
  return ctx.sessionManager
    .buildSessionProjection()
    .messages.some(
      (message) =>
        message.role === 'custom' &&
        message.customType === NOTICE &&
        typeof message.content === 'string' &&
        message.content.startsWith(`id=${id}\n`),
    )
}

/** What a key did, by the name that the list shows; where it was refused, why. */
function told(change: SetChange, done: string): string {
  return change.ok ? done : change.message
}

function rowsOf(report: Report): Row[] {
  const tools = [...report.visible, ...report.collapsed].map((one) => one.tool.length)
  const width = Math.max(0, ...tools)
  const anyStale = report.visible.some((one) => one.stale)
  const head = (size: string, one: { id: string; tool: string }, stale = false): string => {
    const mark = anyStale ? `${stale ? 'stale' : '     '}  ` : ''
    return `${size.padStart(5)}  ${one.id}  ${mark}${one.tool.padEnd(width)}  `
  }
  const visible = report.visible.map((one) => ({
    id: one.id,
    head: head(short(one.tokens), one, one.stale),
    about: one.about,
    pinned: one.pinned,
    collapsed: false,
  }))
  const collapsed = report.collapsed.map((one) => ({
    id: one.id,
    head: head('-', one),
    about: one.about,
    pinned: false,
    collapsed: true,
  }))
  return [...visible, ...collapsed]
}
