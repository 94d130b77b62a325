/** The command `run`: an agent whose requests go through its own gateway. */
import { spawn } from 'node:child_process'
import { accessSync, constants as fsConstants, mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { constants, homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { hostSession, mostHeld, programOf } from '../gateway/index.ts'
import type { Addresses, Gateway, Launch, Program } from '../gateway/index.ts'
import { defaultStorePath, writePrivateFile } from '../core/index.ts'
import { SHARED_HELP, SHARED_OPTIONS, sharedOptions } from './gateway-options.ts'
import { summaryOf } from './gateway-summary.ts'
import { shortenPauses } from './pauses.ts'
import { keepStatus, STATUS_FILE } from './status-file.ts'
import { takeSignals } from './signals.ts'
import { out, plain, tell, tellCommand, UsageError } from '../ui/index.ts'

export const RUN_HELP = `pi-context-manager run [options] -- PROGRAM [ARGUMENTS]

Runs a coding agent through a gateway on this machine: claude, codex, opencode,
gemini, qwen, kilo, cline, copilot, or any program that reads ANTHROPIC_BASE_URL
or OPENAI_BASE_URL. The gateway sends references in place of old tool outputs,
and gives the model a tool to bring them back. It writes nothing into the
agent's configuration. The program keeps its terminal, signals and exit code.

  --print               only show what would be set
${SHARED_HELP}

Exit codes
  the program's own
  127  the program was not found
  2    the gateway failed, or the arguments are wrong`

/** Its options. */
export const RUN_OPTIONS = { ...SHARED_OPTIONS, print: { type: 'boolean' } } as const

/** Runs the command; resolves with the exit code. */
export async function run(args: string[]): Promise<number> {
  const at = args.indexOf('--')
  const own = at < 0 ? args.slice(0, firstWord(args)) : args.slice(0, at)
  const [command, ...rest] = at < 0 ? args.slice(own.length) : args.slice(at + 1)
  const { values } = parseArgs({ args: own, options: RUN_OPTIONS })
  if (command === undefined) throw new UsageError('run needs a program: pi-context-manager run -- claude', RUN_HELP)
  const program = programOf(command, rest, { cwd: process.cwd(), env: process.env })
  if (values.print === true) return print(command, program)
  takeSignals()
  const warnings: string[] = []
  const gateway = await started(program, values, warnings)
  if (gateway === undefined) return runProgram(command, rest, {})
  const prepared = prepare(program, gateway)
  if (prepared === undefined) {
    await gateway.close()
    return runProgram(command, rest, {})
  }
  const { folder, launch } = prepared
  let endStatus = (): void => {}
  try {
    for (const note of launch.notes) tell(`pi-context-manager: ${plain(note)}`)
    if (process.stderr.isTTY && gateway.pageUrl !== undefined) tell(`pi-context-manager: what goes through is shown at ${gateway.pageUrl}`)
    const status = join(folder, 'status.json')
    endStatus = keepStatus(gateway, status)
    return await runProgram(command, launch.args, { ...launch.env, [STATUS_FILE]: status })
  } finally {
    try {
      endStatus()
      await removed(folder)
      for (const warning of warnings) tell(plain(warning))
      for (const line of summaryOf(gateway.ledger, await mostHeld(gateway.conversations.all), gateway.hasFailed)) tell(plain(line))
      const resume = resumeOf(gateway, command)
      if (resume !== undefined)
        tellCommand(
          `pi-context-manager: to continue it: pi-context-manager ${[...['run', ...own, '--'].map(quoted), ...resume.map((word) => quoted(plain(word)))].join(' ')}`,
        )
      warnings.length = 0
    } finally {
      // As long as it listens, this process does not end.
      await gateway.close()
      for (const warning of warnings) tell(plain(warning))
    }
  }
}

/** The program's settings, and the folder of its temporary files; undefined if they can't be made. Then a line says why. */
function prepare(program: Program, gateway: Gateway): { folder: string; launch: Launch } | undefined {
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(privateFolder(), 'pi-context-'))
    const launch = program.launch(gateway, folder)
    for (const [name, content] of Object.entries(launch.files)) writePrivateFile(join(folder, name), content)
    return { folder, launch }
  } catch (error) {
    if (folder !== undefined) void removed(folder)
    tell(`pi-context-manager: the program runs without it: ${plain((error as Error).message)}`)
    return undefined
  }
}

/** Removes the temporary files, in which a process that the program has left may still write. */
async function removed(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    tell(`pi-context-manager: ${plain(folder)} is left: ${plain((error as Error).message)}`)
  }
}

/**
 * Where the program's temporary files go. Gemini CLI reads no settings below a folder that others may write to, as they may to
 * `/tmp`; the folder of a session of the system is the user's alone. A new home may have neither that nor a cache, but it has the
 * folder of the store.
 */
function privateFolder(): string {
  if (process.platform !== 'linux') return tmpdir()
  const data = dirname(defaultStorePath())
  const found = [process.env['XDG_RUNTIME_DIR'] ?? '', join(homedir(), '.cache')].find((one) => one !== '' && isWritable(one))
  return found ?? (isMade(data) ? data : tmpdir())
}

function isMade(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return isWritable(folder)
  } catch {
    return false
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, fsConstants.W_OK)
    return true
  } catch {
    return false
  }
}

/** The command that continues the last session that went through: the agent's own last words name it without the gateway. */
function resumeOf({ ledger }: Gateway, command: string): string[] | undefined {
  const last = ledger.sessions.at(-1)
  if (last === undefined) return undefined
  const id = hostSession(last.session).slice(last.host.length + 1)
  if (!/^[\w-]+$/.test(id)) return undefined
  if (last.host === 'claude-code') return [command, '--resume', id]
  return last.host === 'codex' ? [command, 'resume', id] : undefined
}

/** The index of the program's name without a `--`. */
function firstWord(args: readonly string[]): number {
  const at = args.findIndex((one, index) => !one.startsWith('-') && !/^--(?:store|holdout|models|cache-lifetime)$/.test(args[index - 1] ?? ''))
  return at < 0 ? args.length : at
}

/** The gateway; undefined if it can't start. Then the program runs without it, and a line says why. */
async function started(program: Program, values: Parameters<typeof sharedOptions>[0], warnings: string[]): Promise<Gateway | undefined> {
  const options = sharedOptions(values)
  shortenPauses()
  try {
    const { startGateway } = await import('../gateway/index.ts')
    return await startGateway({
      ...options,
      token: randomBytes(12).toString('base64url'),
      upstreams: program.upstreams,
      program: program.host,
      cwd: process.cwd(),
      onWarning: (sentence) => warnings.push(sentence),
    })
  } catch (error) {
    tell(`pi-context-manager: the program runs without it: ${plain((error as Error).message)}`)
    return undefined
  }
}

/** Runs the program in the foreground. Resolves with its exit code, 128 and the signal's number if a signal has ended it. */
function runProgram(command: string, args: readonly string[], env: Record<string, string>): Promise<number> {
  return new Promise((resolve) => {
    // The terminal also sends these to the program, which decides what they mean.
    const ignore = (): void => {}
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal)
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, ignore)
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, forward)
    const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...env }, shell: process.platform === 'win32' })
    const done = (code: number): void => {
      for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.off(signal, ignore)
      for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.off(signal, forward)
      resolve(code)
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      tell(`pi-context-manager: ${plain(command)} can't be started: ${error.code === 'ENOENT' ? 'there is no such program' : plain(error.message)}`)
      done(error.code === 'ENOENT' ? 127 : 126)
    })
    child.once('exit', (code, signal) => done(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  })
}

/** Shows what would be set, with made-up addresses. */
function print(command: string, program: Program): number {
  const url = 'http://127.0.0.1:PORT/TOKEN'
  const addresses: Addresses = { url, mcpUrl: `${url}/_context/mcp`, secret: 'SECRET' }
  const { args, env, files, notes }: Launch = program.launch(addresses, '/tmp/FOLDER')
  for (const [name, content] of Object.entries(files)) out(`# /tmp/FOLDER/${name}: ${content}`)
  for (const [name, value] of Object.entries(env)) out(`export ${name}=${quoted(value)}`)
  out([command, ...args].map(quoted).join(' '))
  for (const note of notes) out(`# ${note}`)
  return 0
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
