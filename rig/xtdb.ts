/** Real XTDB nodes on loopback. A test that wants one gets a fresh one; the next is started ahead, while the test runs. */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ContextManager } from '../lib/index.ts'
import { onCleanUp } from './cleanup.ts'

const IS_REQUIRED = process.env['CONTEXT_REQUIRE_XTDB'] === '1'

/** The script that starts a node: CONTEXT_XTDB_START, or the one beside the checkout where a node is required. */
const SCRIPT = process.env['CONTEXT_XTDB_START'] ?? (IS_REQUIRED ? fileURLToPath(new URL('../../shared/xtdb/start', import.meta.url)) : '')

/** Milliseconds; the first start on a machine compiles. */
const START_LIMIT_MS = 400_000

/** Small, because several run beside the tests. */
const JVM = '-Xms64m -Xmx512m -XX:TieredStopAtLevel=1'

/**
 * True if a node can't be started here; a line then says so and names the tests that were not run because of it. Throws if
 * CONTEXT_REQUIRE_XTDB asks for a node.
 */
export function withoutXtdb(tests: string): boolean {
  const missing = whyNone()
  if (missing === undefined) return false
  const what = `${tests} not run: ${missing}`
  if (IS_REQUIRED) throw new Error(what)
  process.stderr.write(`${what}\n`)
  return true
}

function whyNone(): string | undefined {
  if (!existsSync(SCRIPT)) return 'CONTEXT_XTDB_START names no script that starts a node'
  if (spawnSync('java', ['-version']).status !== 0) return 'Java is missing'
  return undefined
}

/**
 * Runs the script, says the node's process id, and ends the node when the input is closed: that happens also when this
 * process is killed, and no node may be left behind.
 */
const GUARD = `exec 3<&0
"$@" </dev/null & node=$!
echo $node
(cat <&3 >/dev/null; kill -9 $node; rm -rf "$3") & guard=$!
wait $node; code=$?
kill $guard
exit $code`

/** A node's process. */
interface Running {
  guard: ChildProcess
  pid: number
}

/** A running node. */
export class XtdbNode {
  readonly port: number
  readonly #folder: string
  readonly #kind: string[]
  #running: Running

  private constructor(port: number, folder: string, kind: string[], running: Running) {
    this.port = port
    this.#folder = folder
    this.#kind = kind
    this.#running = running
  }

  /**
   * Starts one, on its own data or on the PostgreSQL at a port; where it ends at its start, it says why and tries again
   * with another port.
   */
  static async start(store: 'memory' | 'rocksdb' | { postgres: number } = 'memory'): Promise<XtdbNode> {
    const kind = typeof store === 'string' ? [store] : ['postgres', String(store.postgres), 'postgres', 'xtdb']
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

  /** Waits until it has read all that any node of its database took: it looks for that every 100 ms only. */
  async caughtUp(): Promise<void> {
    const answer = await fetch(`${this.url}/_xtdb/sync?timeout=60000`, { headers: { accept: 'application/json' } })
    if (!answer.ok) throw new Error(`the node at ${this.url} does not catch up: ${answer.status} ${await answer.text()}`)
  }

  /** Ends it as a crash does. */
  async kill9(): Promise<void> {
    const { guard, pid } = this.#running
    if (guard.exitCode !== null || guard.signalCode !== null) return
    const ended = new Promise((resolve) => guard.once('exit', resolve))
    process.kill(pid, 'SIGKILL')
    await ended
  }

  /** Starts it again on its port and data. */
  async restart(): Promise<void> {
    await this.kill9()
    this.#running = await run(this.port, this.#folder, this.#kind)
  }

  /** Stops the process where it is, or lets it continue. */
  freeze(frozen: boolean): void {
    process.kill(this.#running.pid, frozen ? 'SIGSTOP' : 'SIGCONT')
  }

  /** Ends it for good. */
  async end(): Promise<void> {
    await this.kill9()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

let spare: Promise<XtdbNode> | undefined

/** An empty node in memory, ended by `cleanUp`. */
export async function freshNode(): Promise<XtdbNode> {
  const node = await (spare ?? XtdbNode.start())
  spare = XtdbNode.start()
  // The test that would have used it gets its failure.
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

function run(port: number, folder: string, kind: string[]): Promise<Running> {
  const args = ['-c', GUARD, 'guard', SCRIPT, String(port), folder, ...kind]
  // RocksDB's library unpacks itself into the temporary folder, always under the same name: two nodes that start at
  // the same moment would find it half written.
  const temporary = join(folder, 'tmp')
  mkdirSync(temporary, { recursive: true })
  const options = `${JVM} -Djava.io.tmpdir=${temporary}`
  const guard = spawn('bash', args, { env: { ...process.env, XTDB_JVM_OPTS: options } })
  // It must not keep a test process alive that is done.
  guard.unref()
  let [log, pid] = ['', '']
  return new Promise((resolve, reject) => {
    const fail = (what: string): void => {
      clearTimeout(timer)
      guard.stdin.end()
      reject(new Error(`the XTDB node on port ${port} ${what}:\n${log.slice(-4000)}`))
    }
    const timer = setTimeout(() => fail('does not answer'), START_LIMIT_MS)
    guard.stdout.setEncoding('utf8').on('data', (text: string) => (pid += text))
    guard.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (!log.includes('answers on port')) return
      clearTimeout(timer)
      resolve({ guard, pid: Number(pid) })
    })
    guard.once('error', (error) => fail(`can't be started: ${error.message}`))
    guard.once('exit', (code, signal) => fail(`ended at its start (${code ?? signal})`))
  })
}

/**
 * A free port below those that the system gives to outgoing connections: one of them could have it by the time that
 * the node has started, or started again.
 */
export async function freePort(): Promise<number> {
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

/**
 * A journal whose database was reached once and is away now: the address, where nothing listens. The journal has one
 * session, `known`.
 */
export async function awayFrom(journal: string): Promise<string> {
  const manager = await ContextManager.open({ sessionId: 'known', cwd: tmpdir(), store: { kind: 'sqlite', path: journal }, watch: false })
  await manager.close()
  writeFileSync(`${journal}.progress`, JSON.stringify({ sent: 0, seen: 1 }))
  return `http://127.0.0.1:${await freePort()}`
}

function firstEphemeral(): number {
  try {
    const first = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/)[0])
    return first > 13_000 ? first : 32_768
  } catch {
    return 32_768
  }
}

/** Waits until the clock has gone on from a time in milliseconds, or from now. */
export function tick(from = Date.now()): void {
  while (Date.now() <= from);
}
