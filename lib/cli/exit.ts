/** The exit codes, which are those of grep: the same outcome has the same code in every command. */
import { NotFound } from '../ui/index.ts'

/** It was done; for commands that look for something: it was found. */
export const DONE = 0

/** It was looked for and is not there; or a check found something wrong. */
export const NONE = 1

/** It failed, or was asked for in a wrong way. */
export const FAILED = 2

/** The exit code of an error that ended a command. */
export function exitCodeOf(error: unknown): number {
  return error instanceof NotFound || (error as { code?: unknown }).code === 'UNKNOWN_OBJECT' ? NONE : FAILED
}

/** The last lines of a help text. `none` says what {@link NONE} means there; without it, the command never ends with it. */
export function exitHelp(none?: string, done = 'done'): string {
  const lines = [`${DONE}  ${done}`, ...(none === undefined ? [] : [`${NONE}  ${none}`]), `${FAILED}  it failed, or was asked for in a wrong way`]
  return ['Exit codes', ...lines.map((line) => `  ${line}`)].join('\n')
}
