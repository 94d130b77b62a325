/** Real XTDB nodes on loopback. A test that wants one gets a fresh one; the next is started ahead, while the test runs. */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onCleanUp, onExit } from './cleanup.ts'

/** The script that starts a node: CONTEXT_XTDB_START, or the one beside the checkout. */
const SCRIPT = process.env['CONTEXT_XTDB_START'] ?? fileURLToPath(new URL('../../../shared/xtdb/start', import.meta.url))

/** Milliseconds; the first start on a machine compiles. */
const START_LIMIT_MS = 400_000

/** Small, because several run beside the tests. */
const JVM = '-Xms64m -Xmx512m -XX:TieredStopAtLevel=1'

/** Why no node can be started here; undefined where one can. */
export function noXtdb(): string | undefined {
  if (!existsSync(SCRIPT)) return 'CONTEXT_XTDB_START names no script that starts a node'
  if (spawnSync('java', ['-version']).status !== 0) return 'there is no Java'
  return undefined
}

/** A running node. */
export class XtdbNode {
  readonly port: number
  readonly #folder: string
  readonly #kind: string
  #child: ChildProcess
  readonly #forget: () => void

  private constructor(port: number, folder: string, kind: string, child: ChildProcess) {
    this.port = port
    this.#folder = folder
    this.#kind = kind
    this.#child = child
    this.#forget = onExit(() => this.#remove())
  }

  /** Starts one; where it ends at its start, it says why and tries again with another port. */
  static async start(kind: 'memory' | 'rocksdb' = 'memory'): Promise<XtdbNode> {
    for (let attempt = 1; ; attempt += 1) {
      const folder = mkdtempSync(join(tmpdir(), 'xtdb-'))
      const port = await freePort()
      try {
        return new XtdbNode(port, folder, kind, await run(port, folder, kind))
      } catch (error) {
        rmSync(folder, { recursive: true, force: true })
        if (attempt === 3) throw error
        process.stderr.write(`${(error as Error).message}\n`)
      }
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Ends it as a crash does. */
  async kill9(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    await ended
  }

  /** Starts it again on its port and data. */
  async restart(): Promise<void> {
    await this.kill9()
    this.#child = await run(this.port, this.#folder, this.#kind)
  }

  /** Stops the process where it is, or lets it go on. */
  freeze(frozen: boolean): void {
    this.#child.kill(frozen ? 'SIGSTOP' : 'SIGCONT')
  }

  /** Ends it for good. */
  async end(): Promise<void> {
    await this.kill9()
    this.#forget()
    this.#remove()
  }

  #remove(): void {
    this.#child.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

let spare: Promise<XtdbNode> | undefined

/** An empty node in memory, ended by `cleanUp`. */
export async function freshNode(): Promise<XtdbNode> {
  const node = await (spare ?? XtdbNode.start())
  spare = XtdbNode.start()
  // A failure is told to the test that would have had it.
  spare.catch(() => {})
  onCleanUp(() => node.end())
  return node
}

/** A node that keeps its data when it is killed; ended by `cleanUp`. */
export async function lastingNode(): Promise<XtdbNode> {
  const node = await XtdbNode.start('rocksdb')
  onCleanUp(() => node.end())
  return node
}

function run(port: number, folder: string, kind: string): Promise<ChildProcess> {
  const env = { ...process.env, XTDB_JVM_OPTS: JVM }
  const child = spawn(SCRIPT, [String(port), folder, kind], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  return new Promise((resolve, reject) => {
    const fail = (what: string): void => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      reject(new Error(`the XTDB node on port ${port} ${what}:\n${log.slice(-4000)}`))
    }
    const timer = setTimeout(() => fail('does not answer'), START_LIMIT_MS)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (!log.includes('answers on port')) return
      clearTimeout(timer)
      resolve(child)
    })
    child.once('error', (error) => fail(`can't be started: ${error.message}`))
    child.once('exit', (code, signal) => fail(`ended at its start (${code ?? signal})`))
  })
}

/**
 * A free port below those that the system gives to outgoing connections: one of them could have it by the time that
 * the node has started, or started again.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * (firstEphemeral() - 12_000))
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (free) return port
  }
}

function firstEphemeral(): number {
  try {
    const first = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/)[0])
    return first > 13_000 ? first : 32_768
  } catch {
    return 32_768
  }
}
