/** The exit codes, which are those of grep: the same outcome has the same code in every command. */
import { NotFound } from '../ui/index.ts'

/** The command did its work; for commands that look for something: it found it. */
export const DONE = 0

/** The command found nothing; or a check found something wrong. */
export const NONE = 1

/** The command failed, or its arguments are wrong. */
export const FAILED = 2

/** The exit code of an error that ended a command. */
export function exitCodeOf(error: unknown): number {
  return error instanceof NotFound || (error as { code?: unknown }).code === 'UNKNOWN_OBJECT' ? NONE : FAILED
}

/** The last lines of a help text. `none` says what {@link NONE} means there; without it, the command never ends with it. */
export function exitHelp(none?: string, done = 'done'): string {
  const lines = [`${DONE}  ${done}`, ...(none === undefined ? [] : [`${NONE}  ${none}`]), `${FAILED}  the command failed, or its arguments are wrong`]
  return ['Exit codes', ...lines.map((line) => `  ${line}`)].join('\n')
}
