/** Commands that are interrupted or killed, and the files that they leave. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { inStore } from '../../lib/native/in-store.ts'
import { ContextManager } from '../../lib/index.ts'
import { cli, MAIN, NODE } from '../replay/support.ts'
import { cleanUp, temporaryFolder } from '../../rig/pi.ts'
import { onCleanUp } from '../../rig/cleanup.ts'

afterEach(cleanUp)

/** More than a pipe holds, so that an export to an unread pipe waits. */
const LARGE = 'a secret that must not stay\n'.repeat(20_000)

/** A store, an empty folder for temporary files, and an empty working folder. */
async function given(): Promise<{ folder: string; store: string; temporary: string; env: Record<string, string> }> {
  const folder = temporaryFolder('interrupted-')
  const store = join(folder, 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
  await manager.recordToolcall({ id: 'call_1', tool: 'bash', args: {}, content: LARGE, status: 'ok' })
  await manager.close()
  const temporary = join(folder, 'temporary')
  mkdirSync(temporary)
  return { folder, store, temporary, env: { TMPDIR: temporary } }
}

function started(args: string[], env: Record<string, string>): ChildProcess {
  const child = spawn(NODE[0]!, [...NODE.slice(1), ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  onCleanUp(() => void child.kill('SIGKILL'))
  return child
}

/** Starts an export to a pipe whose reader has stopped. */
async function exporting(store: string, env: Record<string, string>): Promise<ChildProcess> {
  const child = started([MAIN, 'export', '--store', store, '-'], env)
  await once(child.stdout!, 'readable')
  return child
}

/** A page that is being written: its first line is there, and the rest does not come. */
async function writing(page: string, env: Record<string, string>): Promise<ChildProcess> {
  const at = (path: string): string => JSON.stringify(new URL(`../../lib/cli/${path}`, import.meta.url).href)
  const program = `
    const { endOnSignals } = await import(${at('signals.ts')})
    const { writePrivately } = await import(${JSON.stringify(new URL('../../lib/ui/private.ts', import.meta.url).href)})
    endOnSignals()
    setInterval(() => {}, 1000)
    await writePrivately(${JSON.stringify(page)}, async (write) => {
      write('a secret that must not stay')
      console.log('begun')
      await new Promise(() => {})
    })`
  const child = started(['--input-type=module', '--eval', program], env)
  await once(child.stdout!, 'data')
  return child
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<[number | null, NodeJS.Signals | null]> {
  const end = once(child, 'exit')
  child.kill(signal)
  return (await end) as [number | null, NodeJS.Signals | null]
}

describe('a command that is told to end', () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    test(`removes its texts on ${signal}`, async () => {
      const { folder, store, temporary, env } = await given()
      const export_ = await exporting(store, env)
      expect(readdirSync(temporary)).toHaveLength(1)
      expect(await ended(export_, signal)).toEqual([code, null])
      const page = await writing(join(folder, 'page.html'), env)
      expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toHaveLength(1)
      expect(await ended(page, signal)).toEqual([code, null])
      expect(readdirSync(temporary)).toEqual([])
      expect(readdirSync(folder).sort()).toEqual(['context.db', 'temporary'])
    })
  }
})

test('doctor names the files of a killed command, and none of a running one', async () => {
  const { folder, store, temporary, env } = await given()
  const page = join(folder, 'pages', 'page.html')
  mkdirSync(join(folder, 'pages'))
  const [copying, waiting] = [await exporting(store, env), await writing(page, env)]
  const doctor = async (): Promise<{ path: string; bytes: number }[]> => {
    const { code, stdout } = await cli(['doctor', '--store', store, '--json'], env)
    expect(code).toBe(0)
    return JSON.parse(stdout).leftovers
  }
  expect(await doctor()).toEqual([])
  await ended(copying, 'SIGKILL')
  await ended(waiting, 'SIGKILL')
  const left = await doctor()
  expect(left.map(({ path }) => path).sort()).toEqual([
    expect.stringMatching(/pages\/\.page\.html\.\d+-[0-9a-f]{16}\.part$/),
    expect.stringMatching(new RegExp(`^${temporary}/pi-context-manager-\\d+-`)),
  ])
  const { stdout } = await cli(['doctor', '--store', store], env)
  for (const { path } of left) {
    expect(existsSync(path)).toBe(true)
    expect(stdout).toContain(path)
  }
})

test('an export of the library has a name that doctor knows', async () => {
  const { folder, store } = await given()
  const out = join(folder, 'out')
  mkdirSync(out)
  const names: string[] = []
  const watcher = watch(out, (_, name) => void names.push(String(name)))
  onCleanUp(() => watcher.close())
  const complete = new Promise<void>((resolve) => watcher.on('change', (_, name) => name === 'store.jsonl' && resolve()))
  await inStore({ kind: 'sqlite', path: store }, (opened) => opened.export(join(out, 'store.jsonl')))
  await complete
  expect(names[0]).toMatch(new RegExp(`^\\.store\\.jsonl\\.${process.pid}-[0-9a-f]{16}\\.part$`))
})
