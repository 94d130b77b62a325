/** Files that this user may not read or write: each command names the path and the cause, and shows what is left. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Store } from '../../lib/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { giveToOther, lock, notOther, runAsOther } from '../../rig/other-user.ts'
import type { Ended } from '../../rig/other-user.ts'
import { MAIN, program } from '../replay/support.ts'
import { emptyHome, usedHome } from './home.ts'
import type { Home } from './home.ts'

afterEach(cleanUp)

const reason = notOther(MAIN)
if (reason !== undefined) console.log(`unreadable.test.ts: not run: ${reason}`)

const SESSION = '.pi/agent/sessions/--w--/2026_0199aaaa-1.jsonl'
const STORE = '.local/share/pi-context-manager/context.db'
const FORMS = '.local/share/pi-context-manager/gateway-forms/context.db'
const BILLS = '.local/share/pi-context-manager/gateway-bills/context.db.jsonl'

/** A home with the session of one agent only. */
function homeOfPi(): Home {
  const own = usedHome()
  for (const name of ['.claude', '.codex', '.gemini']) rmSync(own.file(name), { recursive: true })
  return own
}

function put(path: string, text = ''): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The command's end in a home where this is locked (a folder, if the name ends with a slash), or damaged. */
async function ended({ home, file, env }: Home, args: readonly string[], { locked, damaged }: { locked?: string; damaged?: string }): Promise<Ended> {
  if (locked?.endsWith('/') === true) mkdirSync(file(locked), { recursive: true })
  else if (locked !== undefined && !existsSync(file(locked))) put(file(locked))
  if (damaged !== undefined) put(file(damaged), 'rubbish\n')
  giveToOther(home)
  if (locked !== undefined) lock(file(locked))
  const { stdout, stderr, ...rest } = await runAsOther(program(...args), home, env)
  const short = (text: string): string => text.replaceAll(home, '~')
  return { ...rest, stdout: short(stdout), stderr: short(stderr) }
}

describe.skipIf(reason !== undefined)('usage', () => {
  const nothing = 'found no model calls in the files that could be read; the one left out may have some\n'
  test.each<[what: string, given: { locked?: string; damaged?: string }, told: string]>([
    ['the only transcript may not be read', { locked: SESSION }, `left out: ~/${SESSION}: permission denied\n${nothing}`],
    ['the only folder may not be read', { locked: dirname(SESSION) }, `left out: ~/${dirname(SESSION)}: permission denied\n${nothing}`],
    ['the only transcript is damaged', { damaged: SESSION }, `left out: ~/${SESSION}: no session: the file holds no JSON lines\n${nothing}`],
  ])('%s', async (_, given, told) => {
    expect(await ended(homeOfPi(), ['usage'], given)).toEqual({ code: 1, stdout: '', stderr: told })
  })

  test('the only transcript may not be read, and is named', async () => {
    const found = await ended(homeOfPi(), ['usage', SESSION, '--since', '7d'], { locked: SESSION })
    expect(found).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^left out: .*: permission denied\n.*found no model calls in the files that could be read/),
    })
  })

  test.each([
    [[], 'found no model calls to sum up\n'],
    [['--since', '1d'], 'found no model calls to sum up; "--since" may leave out all of them\n'],
    [['--project', 'x'], 'found no model calls to sum up; "--project" may leave out all of them\n'],
    [['--since', '1d', '--project', 'x'], 'found no model calls to sum up; "--since" and "--project" may leave out all of them\n'],
  ])('only options that were given may leave out calls: %j', async (options, told) => {
    const own = options.length === 0 ? emptyHome() : homeOfPi()
    if (options.length === 0) mkdirSync(own.file('.pi/agent/sessions'), { recursive: true })
    expect(await ended(own, ['usage', ...options], {})).toEqual({ code: 1, stdout: '', stderr: told })
  })

  test("odd lines among the gateway's notes are counted, and odd values cost no other figure", async () => {
    const own = emptyHome()
    const usage = { input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 0 }
    const call = { at: 1e12, session: 'claude-code:s', folder: '/w', model: 'claude-sonnet-4-5', billed: usage, plain: usage, isHeldOut: false }
    const odd = { input: null, output: 1, cacheRead: 1, cacheWrite: 1 }
    const lines = [call, { ...call, at: 1e18 }, { ...call, prices: { input: 1e308, output: 1e308 } }, { ...call, billed: odd }, { ...call, at: null }, 'x']
    put(
      own.file(BILLS),
      lines
        .map((line) => JSON.stringify(line))
        .join('\n')
        .slice(0, -1),
    )
    const found = await ended(own, ['usage', '--json'], {})
    expect(found).toMatchObject({ code: 0, stderr: "3 lines of the gateway's notes can't be read; what their calls cost is missing\n" })
    const { total, rows } = JSON.parse(found.stdout)
    expect(total).toMatchObject({ calls: 3, cost: 9 })
    expect(rows.map(({ key }: { key: string }) => key)).toEqual([expect.stringMatching(/^2001-09-0/), 'no date'])
  })

  test.each([
    ["the gateway's notes", BILLS, `left out: ~/${BILLS}: permission denied`],
    ["the folder of the gateway's notes", `${dirname(BILLS)}/`, `left out: ~/${BILLS}: permission denied`],
    ['the store', STORE, `what is only in the store is not counted: the store is not available: the store's path can't be used: ~/${STORE}: permission denied`],
  ])('%s may not be read: what the transcripts have is shown', async (_, locked, told) => {
    const found = await ended(homeOfPi(), ['usage', '--json'], { locked })
    expect(found).toMatchObject({ code: 0, stderr: expect.stringContaining(told) })
    expect(JSON.parse(found.stdout)).toMatchObject({ total: { calls: 1 } })
  })
})

describe.skipIf(reason !== undefined)('doctor', () => {
  const JOURNAL = '.local/share/pi-context-manager/xtdb-0123456789ab.db'
  test.each<[what: string, locked: string, told: string]>([
    ['a journal', JOURNAL, `unread     what waits in these journals is not known:\n           ~/${JOURNAL}: permission denied\n`],
    ['the notes beside a journal', `${JOURNAL}.progress`, `           ~/${JOURNAL}: permission denied\n`],
    ['the folder of the forms', `${FORMS}/`, `0 B  ~/${FORMS}: it can't be read: permission denied\n`],
    ['a form', `${FORMS}/a.jsonl`, `0 B  ~/${FORMS}/a.jsonl: it can't be read: permission denied\n`],
  ])('%s may not be read', async (_, locked, told) => {
    const own = emptyHome()
    const path = own.file(STORE)
    if (locked.startsWith(JOURNAL)) put(own.file(JOURNAL))
    const store = await Store.open({ kind: 'sqlite', path })
    await store.close()
    const found = await ended(own, ['doctor'], { locked })
    expect(found).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(told) })
  })

  test.each([
    ['the store', STORE],
    ['its folder', `${dirname(STORE)}/`],
  ])('%s may not be read', async (_, locked) => {
    const found = await ended(emptyHome(), ['doctor'], { locked })
    expect(found).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/~\/.local\/share\/pi-context-manager\/context\.db.*permission denied/) })
  })
})
