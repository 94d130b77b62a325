/** The exit codes, which are those of grep: the same outcome has the same code in every command. */
import { NotFound } from './terminal.ts'

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

/** Returns what follows a help text about them. `none` says what {@link NONE} means there. */
export function exitHelp(none: string): string {
  return `Exit code: 0; 1 ${none}; 2 if it failed or was asked for in a wrong way.`
}
