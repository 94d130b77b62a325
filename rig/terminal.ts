/** The real Pi in its own terminal, for the things that only a person at the keys sees. */
import { stripVTControlCharacters } from 'node:util'
import { deadline } from './cleanup.ts'
import { piArguments } from './options.ts'
import type { PiOptions } from './options.ts'
import { PiProcess } from './process.ts'
import type { Exit } from './process.ts'

/** The further options of a terminal. */
interface TerminalOptions extends PiOptions {
  /** Default 120. */
  columns?: number
  /** Default 40. */
  rows?: number
}

/** Keys by name, as a terminal sends them. */
export const KEYS = { enter: '\r', escape: '\x1b', up: '\x1b[A', down: '\x1b[B' } as const

/** Starts Pi in a terminal and waits until it takes input. */
export async function startTerminal(options: TerminalOptions): Promise<PiTerminal> {
  const terminal = new PiTerminal(options)
  // Pi names the window when it has started; before that it refuses what is entered.
  await terminal.sees(/\x1b\]0;/, 0, (text) => text)
  return terminal
}

/** A Pi in a terminal. Make one with {@link startTerminal}. */
export class PiTerminal {
  readonly process: PiProcess
  readonly #timeoutMs: number

  constructor(options: TerminalOptions) {
    this.#timeoutMs = options.timeoutMs ?? 60_000
    this.process = new PiProcess({
      args: piArguments(options),
      cwd: options.cwd ?? options.home.cwd,
      // The question of a first start would take the keys of every other test.
      env: { ...options.home.env, TERM: 'xterm-256color', CONTEXT_SETTINGS: '{"redact":false}', ...options.env },
      input: true,
      terminal: { columns: options.columns ?? 120, rows: options.rows ?? 40 },
    })
  }

  /** The position after what was written last, to be given to {@link sees} as `from`. */
  get mark(): number {
    return this.process.stdout.length
  }

  /** Types text, or keys of {@link KEYS}. */
  type(text: string): void {
    this.process.child.stdin?.write(text)
  }

  /** Types and waits until Pi has written what matches `shown`. Resolves with all that it wrote meanwhile. */
  press(text: string, shown: RegExp): Promise<string> {
    const from = this.mark
    this.type(text)
    return this.sees(shown, from)
  }

  /** Types what changes the screen, and waits until it has: Pi writes only what differs, so there may be no text. */
  async redraws(text: string): Promise<void> {
    const from = this.mark
    this.type(text)
    await this.sees(/[^]/, from, (written) => written)
  }

  /**
   * Returns Pi's output from a position on, without colours and cursor moves unless `read` says otherwise, once it matches. Rejects
   * when the time is over.
   */
  async sees(wanted: RegExp, from = 0, read = stripVTControlCharacters): Promise<string> {
    const text = () => read(this.process.stdout.slice(from))
    const found = new Promise<string>((resolve) => {
      const look = (): void => {
        if (!wanted.test(text())) return
        this.process.child.stdout?.off('data', look)
        resolve(text())
      }
      this.process.child.stdout?.on('data', look)
      look()
    })
    const ended = this.process.ended.then(() => {
      throw new Error(this.process.describe(`ended before it showed ${wanted}`))
    })
    ended.catch(() => {})
    return deadline(Promise.race([found, ended]), this.#timeoutMs, () => this.process.describe(`has not shown ${wanted}`))
  }

  /** Ends Pi as a person does. */
  async close(): Promise<Exit> {
    this.type('\x04')
    return this.process.wait(this.#timeoutMs)
  }
}
