#!/usr/bin/env node
/** The program `pi-context-manager`. */
import { readFileSync } from 'node:fs'
import { doctor, DOCTOR_HELP } from './doctor.ts'
import { forget, FORGET_HELP } from './forget.ts'
import { inspect, INSPECT_HELP } from './inspect.ts'
import { mcp, MCP_HELP } from './mcp.ts'
import { replay, REPLAY_HELP } from './replay.ts'
import { log, LOG_HELP, search, SEARCH_HELP, sessions, SESSIONS_HELP, show, SHOW_HELP } from './look.ts'
import { limits, LIMITS_HELP, prune, PRUNE_HELP } from './prune.ts'
import { NotFound, out, plain, tell, UsageError } from './terminal.ts'
import { EXPORT_HELP, exportCommand, IMPORT_HELP, importCommand } from './transfer.ts'

interface Command {
  help: string
  /** The exit code of a failure; 1 unless that has another meaning, as with grep. */
  failure?: number
  run(args: string[]): Promise<number>
}

const COMMANDS: Readonly<Record<string, Command>> = {
  replay: { help: REPLAY_HELP, run: replay },
  inspect: { help: INSPECT_HELP, run: inspect },
  export: { help: EXPORT_HELP, run: exportCommand },
  import: { help: IMPORT_HELP, run: importCommand },
  doctor: { help: DOCTOR_HELP, run: doctor, failure: 2 },
  sessions: { help: SESSIONS_HELP, run: sessions, failure: 2 },
  search: { help: SEARCH_HELP, run: search, failure: 2 },
  show: { help: SHOW_HELP, run: show, failure: 2 },
  log: { help: LOG_HELP, run: log, failure: 2 },
  forget: { help: FORGET_HELP, run: forget, failure: 2 },
  prune: { help: PRUNE_HELP, run: prune },
  limits: { help: LIMITS_HELP, run: limits },
  mcp: { help: MCP_HELP, run: mcp },
}

const HELP = `pi-context-manager COMMAND [options]

  replay     show what the context manager would have saved on your recorded sessions
  sessions   list the sessions of a store
  search     search all sessions for words
  show       print the text of a file or tool output
  log        list the versions of an object and what they changed
  inspect    list a store's sessions, objects and versions, or show what a call was sent
  export     write a store or a session to a file
  import     read an exported file into a store
  doctor     check a store's integrity and show what takes up space
  forget     erase a text, an object, a file or a session for good
  prune      remove old sessions
  limits     show or set limits beyond which old sessions are removed
  mcp        serve sessions of a store to MCP clients, read-only

pi-context-manager COMMAND --help explains a command, --version names the version.`

/** Runs the program; resolves with the exit code. */
async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const topic = name === 'help' ? args[0] : undefined
    out(topic !== undefined && Object.hasOwn(COMMANDS, topic) ? (COMMANDS[topic] as Command).help : HELP)
    return name === undefined ? 2 : 0
  }
  if (name === '--version' || name === '-V') {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
    out(version)
    return 0
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new UsageError(`there is no command "${name}"`, HELP)
  if (args.includes('--help') || args.includes('-h')) {
    out(command.help)
    return 0
  }
  try {
    return await command.run(args)
  } catch (error) {
    const code = (error as { code?: string }).code ?? ''
    if (code.startsWith('ERR_PARSE_ARGS')) throw new UsageError((error as Error).message.replaceAll('\n', ' '))
    if (error instanceof UsageError || error instanceof NotFound) throw error
    throw Object.assign(error as Error, { exitCode: command.failure ?? 1 })
  }
}

// The reader of the output may stop reading, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  tell(`pi-context-manager: the output can't be written: ${plain(error.message)}`)
  process.exit(2)
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof UsageError) {
    tell(`pi-context-manager: ${error.message}`)
    process.exitCode = 2
  } else {
    tell(`pi-context-manager: ${plain((error as Error).message ?? String(error))}`)
    process.exitCode = (error as { exitCode?: number }).exitCode ?? 1
  }
}
