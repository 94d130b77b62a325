/** Handling of signals that tell a command to end, and of output without a reader. */
import { FAILED } from './exit.ts'
import { clearBar, plain, tell } from '../ui/index.ts'
import { removeUnfinished } from '../core/index.ts'

/** Signals that end a command, with their numbers. */
const ENDING = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** The number of parts of the program that ignore Ctrl-C now. */
let ignoring = 0

/** From now on a signal removes what is unfinished and ends the process, with 128 and the signal's number as shells expect. */
export function endOnSignals(): void {
  for (const [signal, number] of Object.entries(ENDING)) {
    process.on(signal, () => {
      if ((signal === 'SIGINT' && ignoring > 0) || isTaken) return
      removeUnfinished()
      if (clearBar()) tell('stopped before the end')
      process.exit(128 + number)
    })
  }
}

/** Leaves Ctrl-C to a child in the same terminal, such as a pager. Returns what ends that. */
export function ignoreInterrupts(): () => void {
  ignoring += 1
  return () => void (ignoring -= 1)
}

/** A command handles all signals itself. */
let isTaken = false

/** From now on signals are left to the command. */
export function takeSignals(): void {
  isTaken = true
}

/** True if a reader that stops reading is an error. */
let needsReader = false

/** From now on it is an error if the output can't be written to its end. */
export function needReader(): void {
  needsReader = true
}

/** From now on the command ends if the output can't be written: quietly if its reader stops reading, as `head` does. */
export function endWithoutReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    removeUnfinished()
    if (error.code === 'EPIPE' && !needsReader) process.exit(0)
    const why = error.code === 'EPIPE' ? 'its reader stopped reading, so it is incomplete' : plain(error.message)
    tell(`pi-context-manager: the output can't be written: ${why}`)
    process.exit(FAILED)
  })
}
