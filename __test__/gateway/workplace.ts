/** An agent at work: its home, its project and its store, and the gateway that it runs behind or beside. */
import { spawn } from 'node:child_process'
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { folder } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import type { Addresses } from '../../lib/gateway/program-settings.ts'
import { programOf } from '../../lib/gateway/programs.ts'
import type { Agent } from './agents.ts'

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

/** An agent's place of work: a home, a project, and a store. */
export class Workplace {
  readonly home = folder()
  readonly cwd = join(this.home, 'project')
  readonly store = join(this.home, 'context.db')
  readonly agent: Agent
  readonly #url: string
  /** The options of its gateway. */
  readonly #options: readonly string[]
  #env: Record<string, string>
  #beside: Beside | undefined

  constructor(agent: Agent, url: string, options: readonly string[] = []) {
    mkdirSync(this.cwd)
    delete agent.window
    this.agent = agent
    this.#url = url
    this.#options = options
    this.#env = this.#prepared()
  }

  #prepared(): Record<string, string> {
    return { PATH: process.env['PATH'] ?? '', HOME: this.home, LANG: 'C.UTF-8', ...PROXY(this.agent), ...this.agent.prepare(this.home, this.cwd, this.#url) }
  }

  /** Starts a gateway beside the agent. A later one takes the port of the one before. */
  async startBeside(): Promise<Addresses> {
    const port = this.#beside === undefined ? await freePort() : Number(new URL(this.#beside.addresses.url).port)
    const { child, ended } = this.start(process.execPath, [
      START,
      'gateway',
      '--listen',
      String(port),
      '--store',
      this.store,
      '--anthropic',
      this.#url,
      '--openai',
      `${this.#url}/v1`,
      ...this.#options,
    ])
    const text = await new Promise<string>((resolve, reject) => {
      let said = ''
      child.stdout?.on('data', (data: Buffer) => {
        said += data.toString()
        if (/^page .*\n/m.test(said)) resolve(said)
      })
      void ended.then(({ stderr }) => reject(new Error(stderr)))
    })
    const [, mcpUrl = '', secret = ''] = /^MCP server +(\S+) .*Bearer (\S+)$/m.exec(text) ?? []
    const addresses = { url: `http://127.0.0.1:${port}`, mcpUrl, secret }
    this.#beside = { child, ended, addresses }
    this.agent.gateway = addresses
    this.prepare()
    return addresses
  }

  /** Ends the gateway beside the agent: with what it says at its end, or at once. */
  async endBeside(signal: 'SIGTERM' | 'SIGKILL'): Promise<Ran> {
    const { child, ended } = this.#beside as Beside
    child.kill(signal)
    return ended
  }

  /** Writes the agent's configuration anew. */
  prepare(): void {
    this.#env = this.#prepared()
  }

  /** Runs the agent with the gateway beside it. */
  askBeside(prompt: string, goesOn = false): { child: ChildProcess; ended: Promise<Ran> } {
    const { command, args } = this.agent.program
    const own = [...args, ...this.agent.args(prompt, goesOn)]
    const launch = programOf(command, own, { cwd: this.cwd, env: this.#env }).launch((this.#beside as Beside).addresses, this.home)
    for (const [name, content] of Object.entries(launch.files)) writeFileSync(join(this.home, name), content)
    // A program without its own setting for addresses follows its configuration.
    return this.agent.isBeside === true ? this.start(command, own) : this.start(command, launch.args, launch.env)
  }

  /** Runs the agent behind a gateway: its own, or the one beside it. The result has the words of both. */
  async ask(prompt: string, goesOn = false, more: string[] = []): Promise<Ran> {
    const { command, args } = this.agent.program
    if (this.agent.isBeside === true) {
      await this.startBeside()
      const ran = await this.askBeside(prompt, goesOn).ended
      const { stderr } = await this.endBeside('SIGTERM')
      return { ...ran, stderr: `${ran.stderr}\n${stderr}` }
    }
    return this.run(process.execPath, [
      START,
      'run',
      '--store',
      this.store,
      ...this.#options,
      '--',
      command,
      ...args,
      ...this.agent.args(prompt, goesOn),
      ...more,
    ])
  }

  /** Starts a chat behind a separate gateway. */
  chat(goesOn: boolean): Chat {
    const { command, args } = this.agent.program
    const chat = this.agent.chat as NonNullable<Agent['chat']>
    const own = [...args, ...chat.args, ...(goesOn ? ['--continue'] : [])]
    return new Chat(this.start(process.execPath, [START, 'run', '--store', this.store, ...this.#options, '--', command, ...own], {}, 'pipe'), chat)
  }

  /** Starts any program here. */
  start(command: string, args: string[], env: Record<string, string> = {}, stdin: 'ignore' | 'pipe' = 'ignore'): { child: ChildProcess; ended: Promise<Ran> } {
    const child = spawn(command, args, { cwd: this.cwd, env: { ...this.#env, ...env }, stdio: [stdin, 'pipe', 'pipe'] }) as ChildProcessByStdio<
      Writable | null,
      Readable,
      Readable
    >
    onCleanUp(() => void child.kill('SIGKILL'))
    const ran: Ran = { code: null, stdout: '', stderr: '' }
    child.stdout.on('data', (data: Buffer) => (ran.stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (ran.stderr += data.toString()))
    const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ ...ran, code })))
    return { child, ended }
  }

  run(command: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
    return this.start(command, args, env).ended
  }
}

/** An agent that takes one turn after the other. */
export class Chat {
  readonly #child: ChildProcess
  readonly #ended: Promise<Ran>
  readonly #how: NonNullable<Agent['chat']>

  constructor({ child, ended }: { child: ChildProcess; ended: Promise<Ran> }, how: NonNullable<Agent['chat']>) {
    this.#child = child
    this.#ended = ended
    this.#how = how
  }

  /** One turn. Rejects with what the agent has said if it ends in the middle. */
  async turn(prompt: string): Promise<void> {
    const { stdout, stdin } = this.#child
    const done = new Promise<void>((resolve, reject) => {
      let text = ''
      const hear = (data: Buffer): void => {
        const lines = (text + data.toString()).split('\n')
        text = lines.pop() ?? ''
        if (!lines.some((line) => this.#how.isEnd(line))) return
        stdout?.off('data', hear)
        resolve()
      }
      stdout?.on('data', hear)
      void this.#ended.then(({ stderr, stdout: said }) => reject(new Error(`${stderr}\n${said.slice(-2000)}`)))
    })
    stdin?.write(`${this.#how.line(prompt)}\n`)
    await done
  }

  /** Ends it; it has nothing more to do. */
  end(): Promise<Ran> {
    this.#child.stdin?.end()
    return this.#ended
  }
}

/** A program's outputs until its end. */
interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** A gateway beside an agent. */
interface Beside {
  child: ChildProcess
  ended: Promise<Ran>
  addresses: Addresses
}

/** A proxy that does not exist: no program may ask it for the gateway. A program that runs beside a gateway says so by itself. */
const PROXY = ({ isBeside }: Agent): Record<string, string> =>
  isBeside === true ? {} : { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
