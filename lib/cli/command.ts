/** The parts that make up every command of the command line. */
import type { ParseArgsConfig } from 'node:util'

/** One command. */
export interface Command {
  /** Its purpose, in a line. */
  summary: string
  help: string
  /** Its options, as `parseArgs` takes them. */
  options: NonNullable<ParseArgsConfig['options']>
  /** Runs it; resolves with the exit code. */
  run(args: string[]): Promise<number>
}

/** A command that is not loaded yet. */
export interface CommandEntry {
  /** Its purpose, in a line. */
  summary: string
  load(): Promise<Command>
}
