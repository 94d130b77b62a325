#!/usr/bin/env node
/** The program `pi-context-manager`. */
import { readFileSync } from 'node:fs'
import type { Command } from './command.ts'
import { COMMANDS, overview } from './commands.ts'
import { DONE, exitCodeOf } from './exit.ts'
import { endOnSignals, endWithoutReader } from './signals.ts'
import { out, plain, suggestion, tell, UsageError } from '../ui/index.ts'

/** Runs the program; resolves with the exit code. */
async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined) return (await import('./around.ts')).lookAround()
  if (name === '--help' || name === '-h' || name === 'help') {
    const topic = name === 'help' ? args[0] : undefined
    out(topic === undefined ? overview() : (await commandOf(topic)).help)
    return DONE
  }
  if (name === '--version' || name === '-V' || name === '-v') {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
    out(version)
    return DONE
  }
  const command = await commandOf(name)
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  if (own.includes('--help') || own.includes('-h')) {
    out(command.help)
    return DONE
  }
  try {
    return await command.run(args)
  } catch (error) {
    throw misused(error as Error, name, command) ?? error
  }
}

async function commandOf(name: string): Promise<Command> {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry !== undefined) return entry.load()
  const near = suggestion(name, Object.keys(COMMANDS))
  throw new UsageError(`unknown command "${name}"${near === '' ? '; these are the commands:' : near}`, near === '' ? overview() : undefined)
}

/** Returns what `parseArgs` refuses, as a sentence. */
function misused(error: Error, name: string, { options }: Command): UsageError | undefined {
  const { code = '' } = error as { code?: string }
  if (!code.startsWith('ERR_PARSE_ARGS')) return undefined
  const help = `"pi-context-manager ${name} --help" explains the command`
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL')
    return new UsageError(`${name} takes options only, not ${/'(.*?)'/s.exec(error.message)?.[0] ?? 'a name'}; ${help}`)
  const valueless = /^Option '(?:-\w, )?(--[\w-]+) <value>' argument missing/.exec(error.message)?.[1]
  if (valueless !== undefined) return new UsageError(`${valueless} needs a value; ${help}`)
  const dashed = /^Option '(?:-\w, )?(--[\w-]+)(?: <value>)?' argument is ambiguous/.exec(error.message)?.[1]
  if (dashed !== undefined) return new UsageError(`${dashed} needs a value; one that begins with "-" is written as ${dashed}=VALUE; ${help}`)
  const unknown = code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? /'(-{1,2}[^' ]+)/.exec(error.message)?.[1] : undefined
  if (unknown === undefined) return new UsageError(`${error.message.replaceAll('\n', ' ')}; ${help}`)
  const meant = (MEANT[unknown] ?? []).find((option) => Object.hasOwn(options, option))
  const near =
    meant === undefined
      ? suggestion(
          unknown,
          Object.keys(options).map((option) => `--${option}`),
        )
      : `; did you mean "--${meant}"?`
  return new UsageError(`${name} has no option ${unknown}${near === '' ? `; "pi-context-manager ${name} --help" lists them` : near}`)
}

/** Options of other programs, and ours that do the same: the first one that a command has. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  '--port': ['listen'],
  '-p': ['listen', 'project'],
  '--host': ['listen'],
  '--address': ['listen'],
  '--bind': ['listen'],
  '--db': ['store'],
  '--database': ['store'],
  '--days': ['since'],
  '--from': ['since'],
  '--after': ['since'],
  '--folder': ['project'],
  '--dir': ['project'],
  '--cwd': ['project'],
  '-n': ['limit', 'dry-run'],
  '--max': ['limit'],
  '--count': ['limit'],
  '--preview': ['dry-run'],
  '--output': ['html'],
  '-o': ['html'],
  '--api-key': ['token'],
}

endOnSignals()
endWithoutReader()
try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const { message = String(error) } = error as Error
  tell(`pi-context-manager: ${error instanceof UsageError ? message : plain(message)}`)
  process.exitCode = exitCodeOf(error)
}
