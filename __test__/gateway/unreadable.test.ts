/** The gateway of an agent whose user may not read or write one of its files: the agent continues, and one line names path and cause. */
import { chmodSync, lchownSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { journalOf } from '../../lib/core/place.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { giveToOther, lock, notOther, runAsOther } from '../../rig/other-user.ts'
import { emptyHome } from '../cli/home.ts'
import { MAIN, program } from '../replay/support.ts'

afterEach(cleanUp)

const reason = notOther(MAIN)
if (reason !== undefined) console.log(`unreadable.test.ts: not run: ${reason}`)

/** The class, as packages have it. */
const INDEX = fileURLToPath(new URL('../../dist/index.js', import.meta.url))

const DATA = '.local/share/pi-context-manager'
/** An address where no node listens. */
const NODE = 'http://127.0.0.1:1'

/** An agent with our recall tool: two model calls of one conversation. It says how many of them were answered. */
const AGENT = `
const messages = [{ role: 'user', content: 'x' }]
const tools = [{ type: 'function', function: { name: 'activate', parameters: {} } }]
let answered = 0
for (let n = 0; n < 2; n += 1) {
  const body = JSON.stringify({ model: 'm', tools, messages })
  const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body })
  if ((await answer.text()).includes('hello')) answered += 1
  messages.push({ role: 'assistant', content: 'hello' }, { role: 'user', content: 'again' })
}
console.log(answered)
`

/** A file or folder below the home that its user may not read, the path that a line names, and more options of the command. A folder ends with `/`. */
type Locked = [what: string, locked: string, told: string, options?: string[]]

/** The files that both commands work without. */
const LOCKED: Locked[] = [
  ['the store', `${DATA}/context.db`, `${DATA}/context.db`],
  ['the folder of the forms', `${DATA}/gateway-forms/`, `${DATA}/gateway-forms/context.db`],
  ['the forms of the store', `${DATA}/gateway-forms/context.db/`, `${DATA}/gateway-forms/context.db/`],
  ['the folder of the bills', `${DATA}/gateway-bills/`, `${DATA}/gateway-bills/context.db.jsonl`],
  ['the bills', `${DATA}/gateway-bills/context.db.jsonl`, `${DATA}/gateway-bills/context.db.jsonl`],
  ['the journal', journalOf(NODE, DATA), journalOf(NODE, DATA), ['--store', NODE]],
  ['the notes beside the journal', `${journalOf(NODE, DATA)}.progress`, `${journalOf(NODE, DATA)}.progress`, ['--store', NODE]],
]

/** A home in which one file or folder is locked. */
function lockedHome(locked: string): ReturnType<typeof emptyHome> {
  const place = emptyHome()
  const { home, file } = place
  mkdirSync(file(DATA), { recursive: true })
  mkdirSync(file(locked.endsWith('/') ? locked : dirname(locked)), { recursive: true })
  if (!locked.endsWith('/')) writeFileSync(file(locked), '')
  giveToOther(home)
  lock(file(locked))
  return place
}

function expectToldOnce({ stderr }: { stderr: string }, path: string): void {
  const lines = stderr.split('\n').filter((line) => line.includes(path) && line.includes('permission denied'))
  expect([lines.length, stderr]).toEqual([1, expect.any(String)])
}

describe.skipIf(reason !== undefined)('run', () => {
  test.each<Locked>([
    ...LOCKED,
    ['the folder of the store', `${DATA}/`, `${DATA}/context.db`],
    ['a folder of temporary files', 'temporary/', 'temporary/pi-context-'],
  ])('%s may not be read: the agent continues, and one line names the path and the cause', async (_, locked, told, options = []) => {
    const server = await startModelServer(() => 'hello')
    const { home, file, env } = lockedHome(locked)
    const places = locked === 'temporary/' ? { XDG_RUNTIME_DIR: '', TMPDIR: file('temporary'), XDG_DATA_HOME: file('temporary') } : {}
    const command = program('run', ...options, '--', process.execPath, '--input-type=module', '-e', AGENT)
    const found = await runAsOther(command, home, { ...env, ...places, OPENAI_BASE_URL: `${server.url}/v1` })
    expect([found.code, found.stdout.trim()]).toEqual([0, '2'])
    expectToldOnce(found, file(told))
  })
})

/** Starts a gateway, runs the agent through it, and interrupts it. Its arguments are the agent and the gateway's command. */
const AROUND = `
const { spawn } = await import('node:child_process')
const { once } = await import('node:events')
const [agent, file, ...args] = process.argv.slice(1)
const gateway = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
const ended = once(gateway, 'close')
let said = ''
for await (const text of gateway.stdout.setEncoding('utf8')) {
  said += text
  const url = /OpenAI +(\\S+)\\n/.exec(said)?.[1]
  if (url === undefined) continue
  const child = spawn(process.execPath, ['--input-type=module', '-e', agent], { env: { ...process.env, OPENAI_BASE_URL: url }, stdio: 'inherit' })
  await once(child, 'close')
  gateway.kill('SIGINT')
  break
}
const [code] = await ended
process.exit(code ?? 1)
`

describe.skipIf(reason !== undefined)('gateway', () => {
  test.each(LOCKED)('%s may not be read: requests are answered, and one line names the path and the cause', async (_, locked, told, options = []) => {
    const server = await startModelServer(() => 'hello')
    const { home, file, env } = lockedHome(locked)
    const [node, args] = program('gateway', '--listen', '0', '--openai', `${server.url}/v1`, ...options)
    const found = await runAsOther([process.execPath, ['--input-type=module', '-e', AROUND, AGENT, node, ...args]], home, env)
    expect([found.code, found.stdout.trim(), found.stderr]).toEqual([0, '2', expect.any(String)])
    expectToldOnce(found, file(told))
  })

  // With another secret at each start, the programs that are set up for it could bring nothing back.
  const SECRET = `the gateway's secret can't be kept in HOME/${DATA}/gateway.secret, beside the store: permission denied; name another store with --store`
  test.each<[what: string, locked: string, sentence: string, options?: string[]]>([
    ['the secret', `${DATA}/gateway.secret`, SECRET],
    ['the folder of the store and of the secret', `${DATA}/`, SECRET],
    ['the file of models', 'models.json', "models.json can't be read: permission denied", ['--models', 'models.json']],
  ])('%s may not be read: it does not start, and the only line names the path and the cause', async (_, locked, sentence, options = []) => {
    const { home, env } = lockedHome(locked)
    const found = await runAsOther(program('gateway', '--listen', '0', ...options), home, env)
    expect(found).toEqual({ code: 2, stdout: '', stderr: `pi-context-manager: ${sentence.replace('HOME', home)}\n` })
  })
})

/** Files that another user left among the forms. They need two users, so the tests have to run as the administrator. */
describe.skipIf(reason !== undefined || process.getuid?.() !== 0)('run, beside what another user left', () => {
  const FORMS = `${DATA}/gateway-forms/context.db`
  test.each<[what: string, left: (forms: string) => void]>([
    ['a form that all may read', (forms) => writeFileSync(join(forms, 'a.jsonl'), '', { mode: 0o644 })],
    ['what a killed gateway left unfinished', (forms) => writeFileSync(join(forms, '.a.jsonl.999999999-0123456789abcdef.part'), '')],
    ['a folder of forms whose names can be read only', (forms) => (writeFileSync(join(forms, 'a.jsonl'), ''), chmodSync(forms, 0o744))],
  ])('%s: the gateway starts', async (_, left) => {
    const server = await startModelServer(() => 'hello')
    const { home, file, env } = emptyHome()
    mkdirSync(file(FORMS), { recursive: true })
    giveToOther(home)
    lchownSync(file(FORMS), 0, 0)
    left(file(FORMS))
    const command = program('run', '--', process.execPath, '--input-type=module', '-e', AGENT)
    const { code, stdout, stderr } = await runAsOther(command, home, { ...env, OPENAI_BASE_URL: `${server.url}/v1` })
    expect([code, stdout.trim(), stderr]).toEqual([0, '2', expect.not.stringContaining('runs without it')])
    expect(stderr).toContain(`permission denied, open '${file(FORMS)}/`)
  })
})

describe.skipIf(reason !== undefined)('ContextManager.open', () => {
  const OPEN = `
    const { ContextManager } = await import(process.argv[1])
    const [kind, path] = process.argv.slice(2)
    const store = kind === 'xtdb' ? { kind, url: '${NODE}', journal: path } : { kind, path }
    const failed = await ContextManager.open({ sessionId: 's', cwd: '/', store, isNew: true, watch: false }).then(() => undefined, (error) => error)
    console.log(JSON.stringify([failed?.code, failed?.message]))
  `
  test.each<[what: string, kind: string, locked: string, told: string]>([
    ['the file', 'sqlite', 'd/x.db', 'd/x.db'],
    ['its folder', 'sqlite', 'd/', 'd/x.db'],
    ['the journal', 'xtdb', 'd/x.db', 'd/x.db'],
    ['the folder of the journal', 'xtdb', 'd/', 'd/x.db.progress'],
  ])('%s may not be read (%s): STORE_UNAVAILABLE names the path and the cause', async (_, kind, locked, told) => {
    const { home, file, env } = emptyHome()
    mkdirSync(file('d'))
    writeFileSync(file('d/x.db'), '')
    giveToOther(home)
    lock(file(locked))
    const { stdout } = await runAsOther([process.execPath, ['--input-type=module', '-e', OPEN, INDEX, kind, file('d/x.db')]], home, env)
    expect(JSON.parse(stdout)).toEqual(['STORE_UNAVAILABLE', expect.stringContaining(`${file(told)}`)])
    expect(stdout).toMatch(/permission denied; let this user read and write it and its folder/)
  })
})
