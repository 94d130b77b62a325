/** The question of the first start: asked until it is answered, kept in the settings, and never in the way. */
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, expect } from 'vitest'
import { cleanUp, MODEL, runPrint } from '../../rig/pi.ts'
import { PiProcess } from '../../rig/process.ts'
import { calls } from '../../rig/reply.ts'
import { KEYS, startTerminal } from '../../rig/terminal.ts'
import type { PiTerminal } from '../../rig/terminal.ts'
import { onFile, put, setUp } from './support.ts'
import type { Setting } from './support.ts'

const only = onFile('only a new database file is asked about')
const QUESTION = /Leave out passwords and API keys/
const TOKEN = `ghp_${'a1B2c3D4e5F6g7H8i9J0'.repeat(2).slice(0, 36)}`

afterEach(cleanUp)

async function started(context?: Parameters<typeof setUp>[1]): Promise<{ setting: Setting; start: () => Promise<PiTerminal> }> {
  const setting = await setUp((_request, n) => (n === 0 ? calls(['bash', { command: 'cat key.txt' }, 'call_a']) : `answer ${n}.`), context)
  put(setting.home, 'key.txt', `token = ${TOKEN}`)
  return { setting, start: () => startTerminal({ ...setting.load, env: { ...setting.load.env, CONTEXT_SETTINGS: '' } }) }
}

const settingsOf = ({ home }: Setting) => join(home.agentDir, 'context-manager.json')
const isStored = ({ store }: Setting) => [store, `${store}-wal`].some((path) => existsSync(path) && readFileSync(path).includes(TOKEN))

only('yes keeps secrets out from the first call on, and is not asked again', async () => {
  const { setting, start } = await started({ context: { perTurn: 7 } })
  let terminal = await start()
  await terminal.sees(QUESTION)
  await terminal.press(KEYS.enter, /left out of what is recorded from now on/)
  expect(JSON.parse(readFileSync(settingsOf(setting), 'utf8'))).toEqual({ perTurn: 7, redact: true })
  if (process.platform !== 'win32') expect(statSync(settingsOf(setting)).mode & 0o777).toBe(0o600)
  await terminal.press(`one${KEYS.enter}`, /answer 1\./)
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  expect(isStored(setting)).toBe(false)
  terminal = await start()
  const shown = await terminal.press(`two${KEYS.enter}`, /answer 2\./)
  expect(shown).not.toMatch(QUESTION)
  await terminal.close()
})

only('no is kept, too, and an escape keeps nothing', async () => {
  const { setting, start } = await started()
  const terminal = await start()
  await terminal.sees(QUESTION)
  await terminal.press(KEYS.down, /→ Record everything/)
  await terminal.redraws(KEYS.enter)
  await terminal.press(`one${KEYS.enter}`, /answer 1\./)
  await terminal.close()
  expect(JSON.parse(readFileSync(settingsOf(setting), 'utf8'))).toEqual({ redact: false })
  expect(isStored(setting)).toBe(true)

  const other = await started()
  const second = await other.start()
  await second.sees(QUESTION)
  // Escape and the next key could be read as one.
  await second.press('\x03', /Everything is recorded, passwords and API keys included, until you answer.*"redact" in/s)
  await second.press(`one${KEYS.enter}`, /answer 1\./)
  await second.close()
  expect(existsSync(settingsOf(other.setting))).toBe(false)
  const third = await other.start()
  await third.sees(QUESTION)
  await third.redraws(KEYS.enter)
  await third.close()
  expect(JSON.parse(readFileSync(settingsOf(other.setting), 'utf8'))).toEqual({ redact: true })
})

only('a store that a run without a terminal has made is asked about', async () => {
  const { setting, start } = await started()
  await runPrint({ ...setting.load, prompts: ['one'] })
  expect(isStored(setting)).toBe(true)
  const terminal = await start()
  expect(await terminal.sees(QUESTION)).toMatch(/"redact"/)
  await terminal.redraws(KEYS.enter)
  await terminal.close()
  expect(JSON.parse(readFileSync(settingsOf(setting), 'utf8'))).toEqual({ redact: true })
})

only("installed as a package, it has its name on Pi's start screen", async () => {
  const { home } = await setUp(['fine'], { settings: { quietStartup: false, packages: ['npm:pi-context-manager'] } })
  const packages = join(home.agentDir, 'npm', 'node_modules')
  mkdirSync(packages, { recursive: true })
  symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(packages, 'pi-context-manager'))
  const pi = new PiProcess({
    args: ['--model', MODEL],
    cwd: home.cwd,
    env: { ...home.env, TERM: 'xterm-256color', CONTEXT_STORE: 'memory' },
    input: true,
    terminal: { columns: 80, rows: 40 },
  })
  const shown = (): string => stripVTControlCharacters(pi.stdout).replaceAll(/\s+/g, ' ')
  await new Promise<void>((resolve) => pi.child.stdout?.on('data', () => /\[Extensions\] \S+/.test(shown()) && resolve()))
  expect(shown()).toMatch(/\[Extensions\] pi-context-manager /)
  await pi.kill9()
})

only('settings that say are not asked about', async () => {
  const { setting, start } = await started({ context: { redact: false } })
  const terminal = await start()
  const shown = await terminal.press(`one${KEYS.enter}`, /answer 1\./)
  expect(shown).not.toMatch(QUESTION)
  await terminal.close()
  setting.server.check()
})
