/** `/context` in the terminal: the report as a screen, with keys that act on it. */
import type { ExtensionCommandContext, KeybindingsManager, Theme } from '@earendil-works/pi-coding-agent'
import { decodeKittyPrintable, matchesKey } from '@earendil-works/pi-tui'
import type { Component, TUI } from '@earendil-works/pi-tui'
import { sentenceOf } from '../lib/core/index.ts'
import { headerLine } from '../lib/lines/index.ts'
import { keep, rollNow, switchRolls, undoRoll } from './actions.ts'
import type { StateBefore } from './actions.ts'
import { NOTICE } from './boundary.ts'
import { contentsOf } from './contents.ts'
import type { Host } from './host.ts'
import { isInWindow, returnedId } from './outputs.ts'
import type { Output } from './outputs.ts'
import { makeReport } from './report.ts'
import type { Report } from './report.ts'
import { drawHelp, drawScreen, formOf } from './screen.ts'
import { showStatus } from './ui.ts'
import { moveOf, Viewer } from './viewer.ts'

/** Rows of Pi's own footer: two lines, and one for the status of extensions. */
const PI_ROWS = 3

/** Shows the panel until the user closes it. */
export async function showPanel(host: Host, ctx: ExtensionCommandContext, report: Report): Promise<void> {
  await ctx.ui.custom<void>((tui, theme, keys, done) => new Panel(host, ctx, report, tui, theme, keys, done))
}

class Panel implements Component {
  readonly #host: Host
  readonly #ctx: ExtensionCommandContext
  readonly #tui: TUI
  readonly #theme: Theme
  readonly #keys: KeybindingsManager
  readonly #done: () => void
  #report: Report
  #selected = 0
  /** The number of the list's rows when it was last drawn. */
  #page = 1
  #filter = ''
  #isTyping = false
  #message = ''
  #busy = false
  /** The view that covers the list. */
  #over: Viewer | 'help' | undefined
  /** It takes keys. */
  #isReady = false
  /** It has been drawn. */
  #isDrawn = false
  /** The next key answers a question. */
  #answer: ((yes: boolean) => void) | undefined

  constructor(host: Host, ctx: ExtensionCommandContext, report: Report, tui: TUI, theme: Theme, keys: KeybindingsManager, done: () => void) {
    this.#host = host
    this.#ctx = ctx
    this.#report = report
    this.#tui = tui
    this.#theme = theme
    this.#keys = keys
    this.#done = done
  }

  invalidate(): void {
    // Nothing is kept between two renderings.
  }

  render(width: number): string[] {
    if (!this.#isDrawn) {
      this.#isDrawn = true
      // Keys that were pressed while Pi was drawing are read from the terminal before the second of these.
      setImmediate(() => setImmediate(() => this.#begin()))
    }
    const filter = this.#isTyping || this.#filter !== '' ? this.#filterLine() : undefined
    const height = this.#tui.terminal.rows - PI_ROWS
    if (this.#over === 'help') return drawHelp(width, height, this.#theme)
    if (this.#over !== undefined) return this.#over.draw(width, height, this.#theme)
    const view = { rows: this.#rows(), selected: this.#selected, filter, message: this.#message, takesKeys: this.#isReady }
    const { lines, page } = drawScreen(this.#report, view, width, height, this.#theme)
    this.#page = page
    return lines
  }

  #begin(): void {
    this.#isReady = true
    this.#tui.requestRender()
  }

  handleInput(data: string): void {
    // Letters that a user types before the screen has appeared are not meant for it.
    if (!this.#isReady) return
    this.#message = ''
    const answer = this.#answer
    this.#answer = undefined
    if (answer !== undefined) answer(data === 'y' || data === 'Y' || this.#keys.matches(data, 'tui.select.confirm'))
    else if (this.#over === 'help') this.#over = undefined
    else if (this.#over !== undefined) {
      if (!this.#over.key(data, this.#keys)) this.#over = undefined
    } else if (this.#keys.matches(data, 'tui.select.cancel')) {
      if (!this.#isTyping && this.#filter === '') return this.#done()
      this.#isTyping = false
      this.#setFilter('')
    } else if (this.#isTyping) this.#typed(data)
    else if (data === 'q') return this.#done()
    else this.#pressed(data)
    this.#tui.requestRender()
  }

  /** A key on the list. */
  #pressed(data: string): void {
    const move = moveOf(data, this.#keys, this.#page)
    if (move !== undefined) this.#move(move, Math.abs(move) === 1)
    else if (data === '/') this.#isTyping = true
    else if (data === '?') this.#over = 'help'
    else if (this.#keys.matches(data, 'tui.select.confirm')) void this.#open()
    else {
      const action = ACTIONS[data]
      if (action !== undefined) void this.#act(action)
    }
  }

  #typed(data: string): void {
    if (this.#keys.matches(data, 'tui.select.confirm')) this.#isTyping = false
    else if (matchesKey(data, 'backspace')) this.#setFilter(this.#filter.slice(0, -1))
    else {
      const text = decodeKittyPrintable(data) ?? data
      if (!/\p{Cc}/u.test(text)) this.#setFilter(this.#filter + text)
    }
  }

  #setFilter(text: string): void {
    this.#filter = text
    this.#selected = 0
  }

  #filterLine(): string {
    const cursor = this.#isTyping ? this.#theme.inverse(' ') : ''
    return `${this.#theme.fg('accent', '/')}${this.#filter}${cursor}`
  }

  #rows(): Output[] {
    const words = this.#filter.toLowerCase().split(/\s+/)
    return this.#report.outputs.filter((one) => {
      const text = `${one.name} ${one.tool} ${one.form} ${formOf(one)} ${one.id} ${one.mayCollapse ? 'may collapse' : ''} ${one.pinned ? 'pinned' : ''} ${one.failed ? 'failed' : ''}`
      return words.every((word) => text.toLowerCase().includes(word))
    })
  }

  #move(by: number, around = false): void {
    const count = this.#rows().length
    const next = this.#selected + by
    if (around && count > 0) this.#selected = (next + count) % count
    else this.#selected = Math.max(0, Math.min(count - 1, next))
  }

  async #act(action: Action): Promise<void> {
    const row = this.#rows()[this.#selected]
    if (action.onRow === true && row === undefined) return
    await this.#work(async () => {
      if (action.waits === true && !this.#ctx.isIdle()) this.#say('Waiting for the model to finish...')
      const message = await action.run(this.#host, this.#ctx, row as Output, this.#before)
      if (action.onRow === true && this.#host.boundary !== undefined) await keep(this.#host, this.#host.boundary)
      this.#report = await makeReport(this.#host, this.#ctx)
      this.#follow(row)
      await showStatus(this.#host, this.#ctx)
      // Last: a user who reads it may press the next key at once.
      this.#message = message
    })
  }

  async #open(): Promise<void> {
    const row = this.#rows()[this.#selected]
    if (row === undefined) return
    await this.#work(async () => {
      this.#over = new Viewer(await contentsOf(this.#host, this.#ctx, row, this.#report))
    })
  }

  /** One thing at a time; a failure becomes the message. */
  async #work(work: () => Promise<void>): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    try {
      await work()
    } catch (error) {
      this.#message = this.#theme.fg('error', sentenceOf(error))
    } finally {
      this.#busy = false
      this.#tui.requestRender()
    }
  }

  /** Speaks and asks in the panel's own line. */
  readonly #before: StateBefore = {
    say: (sentence) => this.#say(sentence),
    ask: (question) =>
      new Promise((resolve) => {
        this.#answer = resolve
        this.#say(`${question} (y/n)`)
      }),
  }

  #say(message: string): void {
    this.#message = message
    this.#tui.requestRender()
  }

  /** Keeps the cursor on the same output, wherever that is now. */
  #follow(row: Output | undefined): void {
    const place = this.#rows().findIndex((one) => one.id === row?.id)
    if (place >= 0) this.#selected = place
    else this.#move(0)
  }
}

/** The action of a key. Returns a sentence that says what it did. */
interface Action {
  /** It acts on the selected output. */
  onRow?: true
  /** It waits until the model has finished. */
  waits?: true
  run(host: Host, ctx: ExtensionCommandContext, row: Output, before: StateBefore): Promise<string>
}

const ACTIONS: Record<string, Action> = {
  p: { onRow: true, run: pin },
  d: { onRow: true, run: drop },
  b: { onRow: true, run: bringBack },
  r: { waits: true, run: (host, ctx, _row, before) => rollNow(host, ctx, before) },
  u: { waits: true, run: undoRoll },
  o: { run: async (host, ctx) => switchRolls(host, ctx, host.boundary?.off === true) },
}

async function pin(host: Host, ctx: ExtensionCommandContext, row: Output): Promise<string> {
  const manager = host.manager()
  if (row.pinned) {
    const change = await manager.unpin(row.id)
    return change.ok ? `${row.name} is no longer pinned.` : change.message
  }
  const change = await manager.pin(row.id)
  if (!change.ok) return change.message
  if (isInWindow(row) || row.back !== undefined) return `${row.name} is pinned: it does not collapse.`
  // A pin alone would keep a reference.
  return `Pinned. ${await bringBack(host, ctx, row)}`
}

async function drop(host: Host, _ctx: ExtensionCommandContext, row: Output): Promise<string> {
  const manager = host.manager()
  if (row.form === 'reference' || row.form === 'line') {
    const { ok } = await manager.deactivate(row.id)
    const returning = host.boundary?.returning.has(row.id) === true
    if (returning) {
      const then = row.pinned ? 'stays as long as it is pinned' : 'may collapse after that'
      return `${row.name} still goes to the model with your next message, and ${then}.`
    }
    return ok ? `${row.name} is dropped; the model sees only a reference to it.` : `${row.name} has collapsed already.`
  }
  const change = await manager.deactivate(row.id)
  if (!change.ok && change.code !== 'NOT_ACTIVE') return change.message
  if (row.pinned) return `${row.name} is dropped, but it stays as long as it is pinned.`
  return `${row.name} is dropped: it collapses at the next roll.`
}

/** Appends the text to the conversation, where it costs only its own tokens and leaves the cache intact. */
async function bringBack(host: Host, ctx: ExtensionCommandContext, row: Output): Promise<string> {
  const manager = host.manager()
  const returning = host.boundary?.returning
  if (returning?.has(row.id) === true) return `${row.name} already goes to the model with your next message.`
  if (row.form === 'full') {
    const change = await manager.activate(row.id)
    return change.ok ? `${row.name} is in the window in full.` : change.message
  }
  const change = await manager.activate(row.id)
  if (!change.ok) return change.message
  if (broughtBack(ctx, row.id)) return `${row.name} has been brought back already.`
  if (change.content === undefined) return `${row.name} is in the window in full.`
  const message = { customType: NOTICE, content: `${headerLine(row.id)}\n${change.content}`, display: false }
  host.pi.sendMessage(message, { deliverAs: 'nextTurn' })
  returning?.add(row.id)
  return `${row.name} goes to the model with your next message.`
}

/** True if a message of the conversation already brings an output back. */
function broughtBack(ctx: ExtensionCommandContext, id: string): boolean {
  return ctx.sessionManager.buildSessionProjection().messages.some((message) => returnedId(message) === id)
}
