/** Sessions on an XTDB database that can't be reached: new ones open if their host knows that they are, and unsent writes are reported. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { journalOf } from '../lib/core/place.ts'
import { unsentSentence } from '../lib/core/unsent.ts'
import { HostContext } from '../lib/hosts/context.ts'
import { ContextManager } from '../lib/index.ts'
import type { OpenOptions } from '../lib/index.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import { awayFrom } from '../rig/xtdb.ts'
import { folder } from './core/setup.ts'

afterEach(cleanUp)

const START = fileURLToPath(new URL('../dist/cli/start.js', import.meta.url))

/** A journal without its database. */
async function away(): Promise<{ home: string; options: (sessionId: string, isNew?: boolean) => OpenOptions }> {
  const home = folder()
  const journal = join(home, 'journal.db')
  const store = { kind: 'xtdb', url: await awayFrom(journal), journal } as const
  return { home, options: (sessionId, isNew) => ({ sessionId, cwd: home, store, watch: false, ...(isNew === undefined ? {} : { isNew }) }) }
}

const call = (id: string) => ({ id, tool: 'bash', args: {}, content: `output of ${id}`, status: 'ok' }) as const

test('a session opens without its database if it is new or known, and not if another machine may have it', async () => {
  const { options } = await away()
  const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('session:s is not on this machine, and XTDB at http://127.0.0.1:') as string }
  await expect(ContextManager.open(options('s'))).rejects.toMatchObject(refused)
  const first = await ContextManager.open({ ...options('s', true), systemPrompt: 'prompt' })
  await first.recordToolcall(call('one'))
  const { queued } = (await first.close())!
  expect(queued).toBeGreaterThan(1)
  // The journal has it from now on.
  const again = await ContextManager.open(options('s'))
  expect((await again.sessionSets()).sessionIndex).toEqual(['one'])
  await again.close()
  const known = await ContextManager.open({ ...options('known', true), cwd: tmpdir() })
  expect((await known.history('session:known')).length).toBe(1)
  await known.close()
})

test('a context of a host reports what was not sent', async () => {
  const { options } = await away()
  const warnings: string[] = []
  const context = new HostContext({ ...options('s', true), onWarning: (warning) => warnings.push(warning) }, 'anthropic')
  const { url, queued } = await (await context.manager())!.storeState()
  await context.close()
  expect(warnings).toEqual([
    `pi-context-manager: ${queued} transactions wait in the journal for the XTDB database at ${url}; the next session on it sends them`,
  ])
})

test.each([
  [undefined, undefined],
  [{ kind: 'sqlite', queued: 0 }, undefined],
  [{ kind: 'xtdb', url: 'http://a', queued: 0 }, undefined],
  [{ kind: 'xtdb', url: 'http://a', queued: 1 }, '1 transaction waits in the journal for the XTDB database at http://a; the next session on it sends it'],
  [{ kind: 'xtdb', url: 'http://a', queued: 12 }, '12 transactions wait in the journal for the XTDB database at http://a; the next session on it sends them'],
] as const)('the sentence about %j', (left, sentence) => expect(unsentSentence(left)).toBe(sentence))

/** The environment in which commands find a journal without its database at its default place. */
async function command(): Promise<{ url: string; env: Record<string, string>; home: string; body: string }> {
  const home = folder()
  const place = join(home, 'data', 'pi-context-manager')
  mkdirSync(place, { recursive: true })
  const made = join(place, 'made.db')
  const url = await awayFrom(made)
  const journal = journalOf(url, place)
  expect(dirname(journal)).toBe(place)
  for (const end of ['', '.progress']) renameSync(`${made}${end}`, `${journal}${end}`)
  const body = JSON.stringify({ model: 'm', tools: [{ type: 'function', function: { name: 'activate' } }], messages: [{ role: 'user', content: 'x' }] })
  return { url, env: { PATH: process.env['PATH'] ?? '', HOME: home, XDG_DATA_HOME: join(home, 'data') }, home, body }
}

const line = (url: string): RegExp =>
  new RegExp(`^pi-context-manager: \\d+ transactions wait in the journal for the XTDB database at ${url}; the next session on it sends them$`, 'gm')

test('run records a new session without the database, and says at the end what was not sent', async () => {
  const server = await startModelServer(() => 'hello')
  const { url, env, home, body } = await command()
  const script = `fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body: ${JSON.stringify(body)} }).then((got) => got.text()).then((text) => console.log(text.includes('hello')))`
  const args = [START, 'run', '--store', url, '--', process.execPath, '-e', script]
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, args, { cwd: home, env: { ...env, OPENAI_BASE_URL: `${server.url}/v1` } }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    )
  })
  expect(stdout.trim()).toBe('true')
  expect(stderr.match(line(url)), stderr).toHaveLength(1)
})

test('gateway says when it ends what was not sent', async () => {
  const server = await startModelServer(() => 'hello')
  const { url, env, home, body } = await command()
  const child = spawn(process.execPath, [START, 'gateway', '--listen', '0', '--store', url, '--openai', `${server.url}/v1`], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onCleanUp(() => void child.kill('SIGKILL'))
  let [said, stderr] = ['', '']
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()))
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
      const found = /^OpenAI +(\S+)$/m.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => reject(new Error(`the gateway has ended: ${said}${stderr}`)))
  })
  expect(await (await fetch(`${address}/chat/completions`, { method: 'POST', body })).text()).toContain('hello')
  child.kill('SIGINT')
  await once(child, 'close')
  expect(stderr.match(line(url)), stderr).toHaveLength(1)
})
