/** The command `status-line`, which Claude Code runs for the line below its prompt. It never fails. */
import { readFileSync } from 'node:fs'
import { isFields } from '../core/index.ts'
import { out, plain } from '../ui/index.ts'
import { DONE, exitHelp } from './exit.ts'
import { STATUS_FILE } from './status-file.ts'

export const STATUS_LINE_HELP = `pi-context-manager status-line

Prints what was saved in a session, and when text leaves next. Claude Code runs
it after "pi-context-manager enable claude", with its own figures on standard
input; outside of the gateway it prints nothing.

${exitHelp()}`

export const STATUS_LINE_OPTIONS = {} as const

/** Runs the command; resolves with the exit code. */
export async function statusLine(): Promise<number> {
  try {
    const lines: unknown = JSON.parse(readFileSync(process.env[STATUS_FILE] ?? '', 'utf8'))
    const given: unknown = JSON.parse(readFileSync(0, 'utf8') || '{}')
    const id = isFields(given) ? given['session_id'] : undefined
    const line = isFields(lines) && typeof id === 'string' && Object.hasOwn(lines, id) ? lines[id] : undefined
    if (typeof line === 'string' && line !== '') out(plain(line))
  } catch {
    // The agent works without it.
  }
  return DONE
}
