/** The list of `sessions` in a terminal: it takes the screen, and gives it back as it was. */
import type { ListedSession, ListState } from './session-screen.ts'
import { drawSessions, filtered, keysIn, pageOf, pressed, START } from './session-screen.ts'

/** True if there is a terminal for keys and screen. */
export function canChoose(): boolean {
  return process.stdout.isTTY === true && process.stdin.isTTY === true && process.env['TERM'] !== 'dumb'
}

/** Another screen, without a cursor and with lines that end at its edge, where letters are wide; and back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'

/** Lets the user choose. Resolves with the chosen session; undefined if the user has left. */
export function chooseSession(all: readonly ListedSession[]): Promise<ListedSession | undefined> {
  const { stdin, stdout } = process
  let state: ListState = START
  const size = (): [width: number, height: number] => [Math.max(20, stdout.columns || 80), Math.max(10, stdout.rows || 24)]
  const draw = (): void => {
    const [width, height] = size()
    stdout.write(
      `\x1b[H${drawSessions(all, state, width, height, Date.now())
        .map((line) => `${line}\x1b[K`)
        .join('\r\n')}\x1b[J`,
    )
  }
  // Also where a signal ends the process.
  const restore = (): void => {
    stdin.setRawMode(false)
    stdout.write(LEAVE)
  }
  return new Promise((resolve) => {
    const end = (chosen: ListedSession | undefined): void => {
      stdin.off('data', take).off('end', quit).pause()
      stdout.off('resize', draw)
      process.off('exit', restore)
      restore()
      resolve(chosen)
    }
    const quit = (): void => end(undefined)
    const take = (input: Buffer): void => {
      for (const key of keysIn(input.toString('utf8'))) {
        const rows = filtered(all, state.filter)
        const next = pressed(state, key, rows.length, pageOf(size()[1]))
        if (next === 'quit') return end(undefined)
        if (next === 'chosen') return end(rows[state.selected])
        state = next
      }
      draw()
    }
    process.on('exit', restore)
    stdout.write(ENTER)
    stdin.setRawMode(true)
    stdin.on('data', take).on('end', quit).resume()
    stdout.on('resize', draw)
    draw()
  })
}
