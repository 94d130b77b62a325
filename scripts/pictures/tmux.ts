/** A program in a terminal of tmux: keys in, the screen out. */
import { execFileSync } from 'node:child_process'

/** Milliseconds between two checks of the screen. */
const LOOK_MS = 150
const LIMIT_MS = 120_000

/** What runs, and how large the terminal is. */
export interface TerminalOptions {
  command: string[]
  cwd: string
  /** The whole environment. */
  env: Record<string, string>
  columns: number
  rows: number
}

/** A terminal with a tmux server of its own, so that no other one is affected. */
export class Terminal {
  readonly #socket = `pictures-${process.pid}-${Date.now()}`

  constructor({ command, cwd, env, columns, rows }: TerminalOptions) {
    const variables = Object.entries({ ...env, TERM: 'tmux-256color', COLORTERM: 'truecolor' })
    const line = ['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`), ...command]
    this.#tmux('-f', '/dev/null', 'new-session', '-d', '-s', 'pi', '-x', `${columns}`, '-y', `${rows}`, '-c', cwd, ...line)
    this.#tmux('set-option', '-g', 'window-size', 'manual')
    this.#tmux('set-option', '-g', 'status', 'off')
    this.resize({ columns, rows })
  }

  /** Types a line and Enter. */
  enter(text: string): void {
    this.type(text)
    this.#tmux('send-keys', '-t', 'pi', 'Enter')
  }

  /** Types text as it is. */
  type(text: string): void {
    this.#tmux('send-keys', '-t', 'pi', '-l', text)
  }

  /** Presses a key by its name in tmux. */
  press(key: string): void {
    this.#tmux('send-keys', '-t', 'pi', key)
  }

  resize({ columns, rows }: { columns: number; rows: number }): void {
    this.#tmux('resize-window', '-t', 'pi', '-x', `${columns}`, '-y', `${rows}`)
  }

  /** The screen as text; with its colours as escape sequences. */
  screen(colors = false): string {
    return this.#tmux('capture-pane', '-p', ...(colors ? ['-e'] : []), '-t', 'pi').replace(/\n+$/, '')
  }

  /** The title that the program gave its window. Before that, tmux names it after the machine. */
  get title(): string {
    return this.#tmux('display-message', '-p', '-t', 'pi', '#{pane_title}').trim()
  }

  /** Waits until the screen shows something. */
  sees(wanted: RegExp): Promise<void> {
    return this.until(() => wanted.test(this.screen()))
  }

  /** Waits until the screen no longer changes. */
  async settles(): Promise<void> {
    let last = ''
    let same = 0
    await this.until(() => {
      const now = this.screen()
      same = now === last ? same + 1 : 0
      last = now
      return same >= 4
    })
  }

  /** Waits until a condition holds. Rejects with the screen if that takes too long. */
  async until(done: () => boolean): Promise<void> {
    const end = Date.now() + LIMIT_MS
    while (!done()) {
      if (Date.now() > end) throw new Error(`nothing happens:\n${this.screen()}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }

  /** Ends the program and its terminal. */
  end(): void {
    this.#tmux('kill-server')
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...args], { encoding: 'utf8' })
  }
}
