/** The commands of the program, in the order of its help. */
import type { Command } from './command.ts'
import { completion, COMPLETION_HELP, COMPLETION_OPTIONS } from './completion.ts'
import { doctor, DOCTOR_HELP, DOCTOR_OPTIONS } from './doctor.ts'
import { exitHelp } from './exit.ts'
import { forget, FORGET_HELP, FORGET_OPTIONS } from './forget.ts'
import { gateway, GATEWAY_HELP, GATEWAY_OPTIONS } from './gateway.ts'
import { inspect, INSPECT_HELP, INSPECT_OPTIONS } from './inspect.ts'
import { log, LOG_HELP, LOG_OPTIONS } from './log.ts'
import { search, SEARCH_HELP, SEARCH_OPTIONS, sessions, SESSIONS_HELP, SESSIONS_OPTIONS, show, SHOW_HELP, SHOW_OPTIONS } from './look.ts'
import { mcp, MCP_HELP, MCP_OPTIONS } from './mcp.ts'
import { limits, LIMITS_HELP, LIMITS_OPTIONS, prune, PRUNE_HELP, PRUNE_OPTIONS } from './prune.ts'
import { replay } from './replay.ts'
import { REPLAY_HELP, REPLAY_OPTIONS } from './replay-options.ts'
import { usage, USAGE_HELP, USAGE_OPTIONS } from './usage.ts'
import { why, WHY_HELP, WHY_OPTIONS } from './why.ts'
import { run, RUN_HELP, RUN_OPTIONS } from './run.ts'
import { EXPORT_HELP, EXPORT_OPTIONS, exportCommand, IMPORT_HELP, IMPORT_OPTIONS, importCommand } from './transfer.ts'

/** By name. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  run: { summary: 'run a coding agent, and send its model references for old outputs', help: RUN_HELP, options: RUN_OPTIONS, run },
  gateway: { summary: 'do the same for editors and several agents at once', help: GATEWAY_HELP, options: GATEWAY_OPTIONS, run: gateway },
  replay: {
    summary: 'show what it would have saved on your recorded sessions',
    help: REPLAY_HELP,
    options: REPLAY_OPTIONS,
    run: replay,
  },
  usage: {
    summary: 'show what your sessions cost, and what was saved',
    help: USAGE_HELP,
    options: USAGE_OPTIONS,
    run: usage,
  },
  why: { summary: 'say what made the provider process a prompt again', help: WHY_HELP, options: WHY_OPTIONS, run: why },
  sessions: { summary: 'list the sessions of a store', help: SESSIONS_HELP, options: SESSIONS_OPTIONS, run: sessions },
  search: { summary: 'search all sessions for words', help: SEARCH_HELP, options: SEARCH_OPTIONS, run: search },
  show: { summary: 'print the text of a file or tool output', help: SHOW_HELP, options: SHOW_OPTIONS, run: show },
  log: { summary: 'list the versions of an object and what they changed', help: LOG_HELP, options: LOG_OPTIONS, run: log },
  inspect: {
    summary: "show a store's contents as a page, or what a call was sent",
    help: INSPECT_HELP,
    options: INSPECT_OPTIONS,
    run: inspect,
  },
  export: { summary: 'write a store or a session to a file', help: EXPORT_HELP, options: EXPORT_OPTIONS, run: exportCommand },
  import: { summary: 'read an exported file into a store', help: IMPORT_HELP, options: IMPORT_OPTIONS, run: importCommand },
  doctor: {
    summary: "check a store's integrity and show what takes up space",
    help: DOCTOR_HELP,
    options: DOCTOR_OPTIONS,
    run: doctor,
  },
  forget: {
    summary: 'erase a text, an object, a file or a session for good',
    help: FORGET_HELP,
    options: FORGET_OPTIONS,
    run: forget,
  },
  prune: { summary: 'remove old sessions', help: PRUNE_HELP, options: PRUNE_OPTIONS, run: prune },
  limits: {
    summary: 'show or set limits beyond which old sessions are removed',
    help: LIMITS_HELP,
    options: LIMITS_OPTIONS,
    run: limits,
  },
  mcp: { summary: 'serve sessions of a store to MCP clients, read-only', help: MCP_HELP, options: MCP_OPTIONS, run: mcp },
  completion: {
    summary: 'print what completes commands and options in your shell',
    help: COMPLETION_HELP,
    options: COMPLETION_OPTIONS,
    run: (args) => completion(args, COMMANDS),
  },
}

/** The help of the program. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length))
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `pi-context-manager COMMAND [options]\n\n${lines.join('\n')}\n\npi-context-manager COMMAND --help explains a command. --version (-v) names the\nversion.\n\n${exitHelp('what was looked for is not there')}`
}
