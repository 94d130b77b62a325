/** A PostgreSQL of the test's own, on loopback, as a user without privileges. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onCleanUp } from './cleanup.ts'
import { freePort } from './xtdb.ts'

const INSTALLED = '/usr/lib/postgresql'

/** The user that a superuser's test runs it as; PostgreSQL refuses root. */
const USER_ID = 65534

/** Milliseconds. */
const START_LIMIT_MS = 60_000

/** Why no server can be started here; undefined where one can. */
export function noPostgres(): string | undefined {
  return binaries() === undefined ? `PostgreSQL is not installed in ${INSTALLED}` : undefined
}

/** Starts a server, ended by `cleanUp`, and gives its port. Its database is `postgres`, its user `xtdb`. */
export async function startPostgres(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
  onCleanUp(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const data = join(folder, 'data')
  mkdirSync(data)
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    chmodSync(folder, 0o711)
    chownSync(data, USER_ID, USER_ID)
  }
  const own = isRoot ? { uid: USER_ID, gid: USER_ID } : {}
  const options = { cwd: '/', env: { ...process.env, LC_ALL: 'C' }, ...own }
  const program = (name: string): string => join(binaries() as string, name)
  const made = spawnSync(program('initdb'), ['-D', data, '-U', 'xtdb', '-A', 'trust', '-E', 'UTF8', '--no-sync'], options)
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)

  const port = await freePort()
  const args = ['-D', data, '-h', '127.0.0.1', '-p', String(port), '-F', '-c', 'unix_socket_directories=']
  const server = spawn(program('postgres'), args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  onCleanUp(async () => {
    // It ends its connections and all its processes.
    server.kill('SIGINT')
    await ended
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    const fail = (): void => reject(new Error(`PostgreSQL does not start: ${log}`))
    const timer = setTimeout(fail, START_LIMIT_MS)
    server.once('exit', fail)
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (!log.includes('ready to accept connections')) return
      clearTimeout(timer)
      resolve()
    })
  })
  return port
}

function binaries(): string | undefined {
  if (!existsSync(INSTALLED)) return undefined
  const found = readdirSync(INSTALLED).map((version) => join(INSTALLED, version, 'bin'))
  return found
    .filter((folder) => existsSync(join(folder, 'postgres')))
    .sort()
    .at(-1)
}
