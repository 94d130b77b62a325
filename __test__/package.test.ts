/** What npm would publish, installed into an empty folder without a Rust toolchain: it loads, and Pi runs with it. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { findRuntime } from '../pi-runtime/index.mjs'
import { installHere } from '../scripts/release/install.mjs'
import { startModelServer } from './rig/model-server.ts'
import { calls } from './rig/reply.ts'
import { cleanUp, createPiHome, temporaryFolder } from './rig/pi.ts'

const execute = promisify(execFile)

/** Runs a program without input: one that waits for it would wait for ever. */
function run(file: string, args: string[], options: { cwd: string; env?: Record<string, string> }) {
  const running = execute(file, args, { ...options, encoding: 'utf8' })
  running.child.stdin?.end()
  return running
}

afterEach(cleanUp)

/** Packs what is published for this machine, and installs it into a new folder. */
function installed(): Promise<string> {
  return installHere(temporaryFolder('installed-'))
}

test('the packed packages load without cargo and run in Pi', async () => {
  const target = await installed()
  const main = join(target, 'node_modules', 'pi-context-manager')
  expect(existsSync(join(main, 'crates'))).toBe(false)
  expect(readdirSync(main).filter((name) => name.endsWith('.node'))).toEqual([])

  const script = `
    import { ContextManager, defaultStorePath } from 'pi-context-manager'
    import { ContextManager as Outputs } from 'pi-context-manager/storage'
    const manager = await ContextManager.open({ sessionId: 's', cwd: '/', store: { kind: 'memory' }, watch: false })
    const id = await manager.recordToolcall({ id: 'c', tool: 'bash', args: {}, content: 'out', status: 'ok' })
    console.log(id, (await manager.get(id)).content, typeof defaultStorePath(), Outputs.hashQuery('q').length)
    await manager.close()`
  writeFileSync(join(target, 'try.mjs'), script)
  const { stdout } = await run(process.execPath, ['try.mjs'], { cwd: target })
  expect(stdout.trim()).toBe('c out string 12')

  const server = await startModelServer([calls(['read', { path: 'a.txt' }]), 'done'])
  const home = createPiHome({ server })
  writeFileSync(join(home.cwd, 'a.txt'), 'a line of the file\n'.repeat(40))
  const [file = '', ...first] = findRuntime().command
  const pi = (...args: string[]) => run(file, [...first, ...args], { cwd: home.cwd, env: home.env })
  await pi('install', main)
  const settings = JSON.parse(readFileSync(join(home.agentDir, 'settings.json'), 'utf8')) as { packages?: unknown[] }
  expect(settings.packages).toHaveLength(1)
  expect((await pi('-p', 'Read the file.')).stdout.trim()).toBe('done')
  server.check()

  const request = server.agentRequests[1]
  const results = request?.messages.filter((message) => message.role === 'tool') ?? []
  expect(JSON.stringify(results)).toMatch(/id=[0-9a-f]{8}\\na line/)
  expect(request?.tools).toContain('read')
  expect(existsSync(join(home.home, '.local', 'share', 'pi-context-manager', 'context.db'))).toBe(true)
})
