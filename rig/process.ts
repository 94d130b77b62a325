/** A Pi process: started in isolation, its output collected, killed for real when a test wants that. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { findRuntime } from '../pi-runtime/index.mjs'
import { deadline, onCleanUp, onExit } from './cleanup.ts'

/** The end of a process: exactly one of the two is set. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** The program to start. */
interface StartOptions {
  /** Pi's arguments. */
  args: string[]
  cwd: string
  /** The whole environment; nothing is inherited. */
  env: Record<string, string>
  /** True if the process gets a pipe as its input; else its input is empty. */
  input: boolean
  /** A terminal of this size between the pipes and the process. */
  terminal?: { columns: number; rows: number }
}

/** A running Pi. */
export class PiProcess {
  readonly child: ChildProcess
  /** Resolves when the process has ended and its output is complete. */
  readonly ended: Promise<Exit>
  /** Standard output so far. */
  stdout = ''
  /** Standard error so far. */
  stderr = ''
  #exit: Exit | undefined
  #orphans: number[] = []
  readonly #args: string[]

  constructor(options: StartOptions) {
    const runtime = findRuntime()
    this.#args = options.args
    const [file, args] = inTerminal([...runtime.command, ...options.args], options.terminal)
    this.child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: [options.input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      windowsHide: true,
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.stderr += `could not start: ${error.message}\n`
        this.#exit ??= { code: -1, signal: null }
        resolve(this.#exit)
      })
      // A command that Pi left behind may hold the pipes open, so after the exit they get a moment only.
      this.child.once('exit', (code, signal) => {
        this.#exit = { code, signal }
        setTimeout(() => resolve({ code, signal }), 2_000).unref()
      })
      this.child.once('close', (code, signal) => resolve({ code, signal }))
    })
    const forget = onExit(() => this.child.kill('SIGKILL'))
    void this.ended.then(forget)
    onCleanUp(async () => {
      if (this.running) await this.kill9()
      for (const pid of this.#orphans) end(pid)
    })
  }

  /** True if the process has not ended yet. */
  get running(): boolean {
    return this.#exit === undefined
  }

  /** Waits for the end; after `timeoutMs` kills the process and rejects with all it said. */
  async wait(timeoutMs: number): Promise<Exit> {
    try {
      return await deadline(this.ended, timeoutMs, () => this.describe('has not ended'))
    } catch (error) {
      await this.kill9()
      throw error
    }
  }

  /** SIGKILL: no handler of the process runs. Commands it had started are ended by `cleanUp`. */
  async kill9(): Promise<Exit> {
    if (this.running && this.child.pid !== undefined) {
      this.#orphans.push(...descendants(this.child.pid))
      this.child.kill('SIGKILL')
    }
    return this.ended
  }

  /** A sentence about the process with what it wrote, for errors. */
  describe(what: string): string {
    return `pi ${this.#args.join(' ').slice(0, 300)} ${what}\n--- stderr\n${tail(this.stderr)}\n--- stdout\n${tail(this.stdout)}`
  }
}

/** A command, run in a terminal that `script` makes where one is asked for. */
export function inTerminal(command: string[], size: StartOptions['terminal']): [file: string, args: string[]] {
  if (size === undefined) return [command[0] as string, command.slice(1)]
  const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const line = `stty rows ${size.rows} cols ${size.columns}; exec ${quoted}`
  return process.platform === 'linux'
    ? ['script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null']]
    : ['script', ['-q', '/dev/null', 'sh', '-c', line]]
}

/** A command, run by a user who may not write: root may write anything. */
export function byReader(file: string, args: readonly string[]): [file: string, args: string[]] {
  return process.getuid?.() === 0 ? ['setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', file, ...args]] : [file, [...args]]
}

/** The last 4000 characters, where something went wrong. */
function tail(text: string): string {
  return text.length <= 4000 ? text : `...${text.slice(-4000)}`
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Every process below `root`, at this moment. Empty where the system does not tell. */
function descendants(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const [pid, parent] of processTable()) {
    const list = children.get(parent)
    if (list === undefined) children.set(parent, [pid])
    else list.push(pid)
  }
  const found: number[] = []
  const open = [root]
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    const below = children.get(pid) ?? []
    found.push(...below)
    open.push(...below)
  }
  return found
}

/** Pairs of process and parent process. */
function processTable(): [number, number][] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name): [number, number][] => {
        try {
          const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
          const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
          return [[Number(name), Number(parent)]]
        } catch {
          return []
        }
      })
  }
  if (process.platform === 'win32') return []
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number])
}
