/** The commands of the program, in the order of its help. A command's code is loaded when it runs. */
import type { Command, CommandEntry } from './command.ts'
import { exitHelp } from './exit.ts'

/** By name. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  run: entry('run a coding agent, and send its model references for old outputs', async () => {
    const { RUN_HELP: help, RUN_OPTIONS: options, run } = await import('./run.ts')
    return { help, options, run }
  }),
  enable: entry('start an agent through the gateway in every terminal', async () => {
    const { enable: run, ENABLE_HELP: help, ENABLE_OPTIONS: options } = await import('./enable.ts')
    return { help, options, run }
  }),
  disable: entry('remove what "enable" added', async () => {
    const { disable: run, DISABLE_HELP: help, DISABLE_OPTIONS: options } = await import('./enable.ts')
    return { help, options, run }
  }),
  gateway: entry('do the same for editors and several agents at once', async () => {
    const { GATEWAY_HELP: help, GATEWAY_OPTIONS: options, gateway: run } = await import('./gateway.ts')
    return { help, options, run }
  }),
  replay: entry('show what it would have saved on your recorded sessions', async () => {
    const { REPLAY_HELP: help, REPLAY_OPTIONS: options } = await import('./replay-options.ts')
    const { replay: run } = await import('./replay.ts')
    return { help, options, run }
  }),
  usage: entry('show what your sessions cost, and what was saved', async () => {
    const { USAGE_HELP: help, USAGE_OPTIONS: options, usage: run } = await import('./usage.ts')
    return { help, options, run }
  }),
  why: entry('say why the provider processed a prompt again', async () => {
    const { WHY_HELP: help, WHY_OPTIONS: options, why: run } = await import('./why.ts')
    return { help, options, run }
  }),
  sessions: entry('list the sessions of a store', async () => {
    const { SESSIONS_HELP: help, SESSIONS_OPTIONS: options, sessions: run } = await import('./look.ts')
    return { help, options, run }
  }),
  search: entry('search all sessions for words', async () => {
    const { SEARCH_HELP: help, SEARCH_OPTIONS: options, search: run } = await import('./look.ts')
    return { help, options, run }
  }),
  show: entry('print the text of a file or tool output', async () => {
    const { SHOW_HELP: help, SHOW_OPTIONS: options, show: run } = await import('./look.ts')
    return { help, options, run }
  }),
  log: entry('list the versions of an object and what they changed', async () => {
    const { LOG_HELP: help, LOG_OPTIONS: options, log: run } = await import('./log.ts')
    return { help, options, run }
  }),
  inspect: entry("show a store's contents as a page, or what a call was sent", async () => {
    const { INSPECT_HELP: help, INSPECT_OPTIONS: options, inspect: run } = await import('./inspect.ts')
    return { help, options, run }
  }),
  export: entry('write a store or a session to a file', async () => {
    const { EXPORT_HELP: help, EXPORT_OPTIONS: options, exportCommand: run } = await import('./transfer.ts')
    return { help, options, run }
  }),
  import: entry('read an exported file into a store', async () => {
    const { IMPORT_HELP: help, IMPORT_OPTIONS: options, importCommand: run } = await import('./transfer.ts')
    return { help, options, run }
  }),
  doctor: entry("check a store's integrity and show what takes up space", async () => {
    const { DOCTOR_HELP: help, DOCTOR_OPTIONS: options, doctor: run } = await import('./doctor.ts')
    return { help, options, run }
  }),
  forget: entry('erase a text, an object, a file or a session for good', async () => {
    const { FORGET_HELP: help, FORGET_OPTIONS: options, forget: run } = await import('./forget.ts')
    return { help, options, run }
  }),
  prune: entry('remove old sessions', async () => {
    const { PRUNE_HELP: help, PRUNE_OPTIONS: options, prune: run } = await import('./prune.ts')
    return { help, options, run }
  }),
  limits: entry('show or set limits beyond which old sessions are removed', async () => {
    const { LIMITS_HELP: help, LIMITS_OPTIONS: options, limits: run } = await import('./prune.ts')
    return { help, options, run }
  }),
  mcp: entry('serve sessions of a store to MCP clients, read-only', async () => {
    const { MCP_HELP: help, MCP_OPTIONS: options, mcp: run } = await import('./mcp.ts')
    return { help, options, run }
  }),
  'status-line': entry("print what was saved, for Claude Code's status line", async () => {
    const { statusLine: run, STATUS_LINE_HELP: help, STATUS_LINE_OPTIONS: options } = await import('./status-line.ts')
    return { help, options, run }
  }),
  completion: entry('print a script that completes commands and options', async () => {
    const { completion, COMPLETION_HELP: help, COMPLETION_OPTIONS: options } = await import('./completion.ts')
    return { help, options, run: async (args) => completion(args, await loaded()) }
  }),
}

/** All commands, loaded. */
export async function loaded(): Promise<Readonly<Record<string, Command>>> {
  const pairs = Object.entries(COMMANDS).map(async ([name, { load }]) => [name, await load()] as const)
  return Object.fromEntries(await Promise.all(pairs))
}

function entry(summary: string, load: () => Promise<Omit<Command, 'summary'>>): CommandEntry {
  return { summary, load: async () => ({ summary, ...(await load()) }) }
}

/** The help of the program. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length))
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `pi-context-manager [COMMAND [options]]\n\nWithout a command, it looks for agents and their sessions on this machine, and\nsays where to begin. It writes nothing.\n\n${lines.join('\n')}\n\npi-context-manager COMMAND --help explains a command. --version (-v) prints\nthe version.\n\n${exitHelp('nothing was found')}`
}
