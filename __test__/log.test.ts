/** The log of a slow turn: a line for each call and each of its steps, from the environment alone. */
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))

afterEach(cleanUp)

/** One turn of a session in its own process. */
const TURN = `
  import { ContextManager } from ${JSON.stringify(join(ROOT, 'dist', 'index.js'))}
  const [cwd, path] = process.argv.slice(1)
  const manager = await ContextManager.open({ sessionId: 'log session', cwd, store: { kind: 'sqlite', path } })
  await manager.receive({ id: 'call_1', tool: 'bash\\nforged', args: {}, content: 'private output', status: 'ok' })
  await manager.settle()
  await manager.close()
  console.log('done')
`

async function turn(folder: string, env: Record<string, string>) {
  const flags = ['--input-type=module', '-e', TURN, folder, join(folder, 'store.db')]
  return await execute(process.execPath, flags, { env: { ...process.env, ...env } })
}

test('a turn can be followed from the log alone', async () => {
  const folder = temporaryFolder('log-')
  const log = join(folder, 'turn.log')
  const { stdout, stderr } = await turn(folder, { PI_CONTEXT_LOG: log })
  expect({ stdout, stderr }).toEqual({ stdout: 'done\n', stderr: '' })
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
  for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\S+ +(ERROR|WARN|INFO|DEBUG) /)
  const ended = lines.filter((line) => line.includes(': close time.busy='))
  const within = (...spans: string[]) => ended.filter((line) => spans.every((span) => line.includes(span)))
  expect(within('session{id="log session"}', ':open:')).not.toEqual([])
  expect(within('session{id="log session"}', ':receive{call="call_1" tool="bash\\nforged"}:', ':store_write:')).not.toEqual([])
  expect(within('session{id="log session"}', ':settle:')).not.toEqual([])
  expect(lines.join('\n')).not.toContain('private output')
  if (process.platform !== 'win32') expect(statSync(log).mode & 0o777).toBe(0o600)
})

test('a level leaves out the lower ones', async () => {
  const folder = temporaryFolder('log-')
  const log = join(folder, 'turn.log')
  await turn(folder, { PI_CONTEXT_LOG: log, PI_CONTEXT_LOG_LEVEL: 'warn' })
  expect(readFileSync(log, 'utf8')).toBe('')
})

test('a log that cannot be opened costs one line, and the turn continues', async () => {
  const folder = temporaryFolder('log-')
  const { stdout, stderr } = await turn(folder, { PI_CONTEXT_LOG: join(folder, 'missing', 'turn.log') })
  expect(stdout).toBe('done\n')
  expect(stderr).toMatch(/^pi-context-manager: no log: .* can't be opened: .*PI_CONTEXT_LOG names the file\n$/)
})

test('without the variable there is none', async () => {
  const folder = temporaryFolder('log-')
  const { stderr } = await turn(folder, { PI_CONTEXT_LOG: '' })
  expect(stderr).toBe('')
})
