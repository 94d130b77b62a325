/** The program without a command: what it finds, what it says first, and when it stops. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { report } from '../../lib/cli/around.ts'
import { estimated } from '../../lib/cli/estimate.ts'
import type { AgentSessions, Found, Limits } from '../../lib/cli/estimate.ts'
import { billsFile } from '../../lib/gateway/bills.ts'
import { openAny } from '../../lib/recordings/open.ts'
import { ListedCalls } from '../../lib/usage/listed.ts'
import { chargesOf } from '../../lib/usage/charges.ts'
import type { Charge } from '../../lib/usage/charges.ts'
import { programPath } from '../../lib/usage/agent-folders.ts'
import type { AgentFolder } from '../../lib/usage/agent-folders.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { cli, fixture, program, temporaryFolder, UNHURRIED } from '../replay/support.ts'
import { emptyHome, usedHome } from './home.ts'

afterEach(cleanUp)

/** The program with these agents installed, beside what the program itself needs. */
function installed(env: Record<string, string>, ...commands: readonly string[]): Record<string, string> {
  const folder = join(temporaryFolder(), 'bin')
  mkdirSync(folder)
  for (const command of commands) writeFileSync(join(folder, command), '#!/bin/sh\n', { mode: 0o755 })
  return { ...env, PATH: folder }
}

/** Everything in a folder: names, sizes and times. */
function contents(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map((name) => {
    const { size, mtimeMs } = statSync(join(folder, String(name)))
    return `${String(name)} ${size} ${mtimeMs}`
  })
}

describe('it says what is here and where to begin', () => {
  test('with sessions of all agents, it sums up each and writes nothing', async () => {
    const { home, env } = usedHome()
    const before = contents(home)
    const { code, stdout, stderr } = await cli([], { ...UNHURRIED, ...installed(env, 'claude', 'opencode') })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Installed: Claude Code and OpenCode.\n')
    for (const [agent, since] of [
      ['Pi', '2026-03-01'],
      ['Claude Code', '2026-03-01'],
      ['Codex', '2026-03-02'],
      ['Gemini CLI', '2026-03-03'],
    ])
      expect(stdout).toMatch(new RegExp(`^${agent} +1  ${since} +\\$0\\.00 +~\\$0\\.00$`, 'm'))
    expect(stdout).toMatch(/^total +4 /m)
    expect(stdout).toContain('Begin with: pi-context-manager run -- claude\n')
    expect(stdout).toMatch(/by\s+a\s+replay\s+of\s+4\s+sessions,\s+the\s+newest\s+of\s+each\s+agent\s+first/)
    expect(contents(home)).toEqual(before)
  })

  test('with nothing at all, it names the folders that it looked into', async () => {
    const { home, env } = emptyHome()
    const { code, stdout, stderr } = await cli([], { ...UNHURRIED, ...installed(env) })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'No coding agent that is known here is installed. There are no recorded sessions in ~/.pi/agent/sessions, ~/.claude/projects, ~/.codex/sessions, ~/.gemini/tmp and ~/.local/share/opencode/opencode.db.',
    )
    expect(contents(home)).toEqual([])
  })
})

test.each<[what: string, make: (path: string) => void, isFound: boolean]>([
  ['a program', (path) => writeFileSync(path, '', { mode: 0o755 }), true],
  ['a link to a program', (path) => symlinkSync(process.execPath, path), true],
  ['a link to nothing', (path) => symlinkSync('/nowhere', path), false],
  ['a folder of that name', (path) => mkdirSync(path), false],
  ['nothing', () => {}, false],
])('%s in the second folder of PATH', (_what, make, isFound) => {
  const [first, second] = [temporaryFolder(), temporaryFolder()]
  make(join(second, 'claude'))
  expect(programPath('claude', { PATH: `${first}::${second}` })).toBe(isFound ? join(second, 'claude') : undefined)
})

/** Gives the calls of a session other names, so that they are charged again. */
function distinct(file: string, at: number): void {
  const { mtimeMs } = statSync(file)
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"msg_', `"msg_${at}`))
  utimesSync(file, mtimeMs / 1000, mtimeMs / 1000)
}

/** An agent with one session, of which nothing was replayed. */
function agentOf(agent: string, paid: number): AgentSessions {
  const none = { onPlan: { calls: 0, sent: 0, without: 0 }, managed: { paid: 0, saved: 0 }, sample: { sessions: 0, paid: 0, saved: 0 } }
  return { agent, host: 'x', command: 'x', path: '/', sessions: 1, calls: 1, unpriced: 0, unbilled: 0, since: undefined, paid, ...none }
}

function foundOf(...agents: AgentSessions[]): Found {
  return { agents, files: 2, read: 2, unreadable: 0, listed: new ListedCalls() }
}

/** Lines as one, with single spaces. */
function words(lines: readonly string[]): string {
  return lines.join(' ').replaceAll(/\s+/g, ' ')
}

/** Folders of Claude Code with as many copies of a session, the first one the newest, each in its own file. */
function copies(count: number): string {
  const folder = temporaryFolder()
  for (let at = 0; at < count; at += 1) {
    const file = join(folder, `${at}.jsonl`)
    copyFileSync(fixture('claude-code.jsonl'), file)
    chmodSync(file, 0o644)
    utimesSync(file, 1_000_000 - at, 1_000_000 - at)
  }
  return folder
}

/** Looks with limits that end the sums, or all, after some looks. */
async function looked(path: string, limits: Partial<Limits> = {}, gatewayFile?: string): Promise<Found> {
  return estimated([{ agent: 'Claude Code', host: 'claude-code', command: 'claude', path }], gatewayFile, {
    isReadingOver: () => false,
    isOver: () => false,
    progress: () => {},
    ...limits,
  })
}

test.each([
  [1, 0, '1 call is of a model without known prices and counts as $0.'],
  [1_200, 0, '1,200 calls are of models without known prices and count as $0.'],
  [0, 1, '1 call has no bill and counts as $0.'],
  [0, 2, '2 calls have no bill and count as $0.'],
])('%i calls of unknown models and %i without a bill are told apart', (unpriced, unbilled, sentence) => {
  expect(words(report(foundOf({ ...agentOf('Codex', 1), unpriced, unbilled }), []))).toContain(sentence)
})

describe('the estimate', () => {
  test('is that of replay, for the sessions that were replayed', async () => {
    const { agents } = await looked(copies(1))
    const { stdout } = await cli(['replay', fixture('claude-code.jsonl'), '--policies', 'recorded,pi-context-manager', '--json'])
    const [account] = (JSON.parse(stdout) as { summary: { accounts: { paid: number; own: number }[] } }).summary.accounts
    expect(agents[0]?.sample.saved).toBeCloseTo((account?.paid ?? 0) - (account?.own ?? 0), 9)
    expect(agents[0]?.sample).toMatchObject({ sessions: 1, paid: agents[0]?.paid })
  })

  test('takes the newest first, and what was read when the time was over counts', async () => {
    const read: string[] = []
    const found = await looked(copies(3), { isReadingOver: () => read.length > 5, isOver: () => true, progress: (_part, text) => read.push(text) })
    expect(found).toMatchObject({ files: 3, read: 1 })
    expect(new Set(read.map((path) => path.at(-7)))).toEqual(new Set(['0']))
    expect(found.agents[0]).toMatchObject({ sessions: 1, calls: 6, sample: { sessions: 0 } })
  })

  test('reads the newest file also where the time for the sums was over before it began, unless all time is', async () => {
    const late = { isReadingOver: () => true }
    const found = await looked(copies(2), late)
    expect(found).toMatchObject({ files: 2, read: 1 })
    expect(found.agents[0]?.calls).toBeGreaterThan(0)
    expect(await looked(copies(2), { ...late, isOver: () => true })).toMatchObject({ files: 2, read: 0 })
  })

  test('compares only the beginning of a session that is cut off', async () => {
    let [all, looks] = [0, 0]
    const whole = (await looked(copies(1), { isOver: () => (all += 1) < 0 })).agents[0]
    // The survey and the replay look once for each step, so this ends in the middle of the replay.
    const { agents } = await looked(copies(1), { isOver: () => (looks += 1) > 0.75 * all })
    expect(agents[0]?.paid).toBe(whole?.paid)
    expect(agents[0]?.sample.paid).toBeGreaterThan(0)
    expect(agents[0]?.sample.paid).toBeLessThan(whole?.paid ?? 0)
  })

  test('leaves out the sessions that went through the gateway, whose saving is known', async () => {
    const gateway = join(temporaryFolder(), 'bills.jsonl')
    const alone = await looked(copies(1))
    const charges = await callsOf(join(copies(1), '0.jsonl'))
    writeFileSync(
      gateway,
      charges
        .map(
          ({ at, tokens: billed }) =>
            `${JSON.stringify({ at, session: 'claude-code:x', folder: '/', model: 'anthropic/claude-sonnet-4-5', billed, plain: billed, isHeldOut: false })}\n`,
        )
        .join(''),
    )
    const { agents } = await looked(copies(1), {}, gateway)
    expect(agents[0]?.paid).toBe(alone.agents[0]?.paid)
    expect(agents[0]?.managed.paid).toBeCloseTo(agents[0]?.paid ?? 0, 9)
    expect(agents[0]?.sample.sessions).toBe(0)
  })

  test('replays the newest session of each agent before the others', async () => {
    const [newer, older] = [copies(3), copies(1)]
    utimesSync(join(older, '0.jsonl'), 1, 1)
    for (const [at, file] of [join(newer, '1.jsonl'), join(newer, '2.jsonl'), join(older, '0.jsonl')].entries()) distinct(file, at)
    const paths: string[] = []
    const folder = (agent: string, path: string): AgentFolder => ({ agent, host: 'claude-code', command: 'claude', path })
    await estimated([folder('A', newer), folder('B', older)], undefined, {
      isReadingOver: () => false,
      isOver: () => false,
      progress: (part, path) => void (part >= 0.6 && paths.push(path)),
    })
    expect(paths).toEqual([join(newer, '0.jsonl'), join(older, '0.jsonl'), join(newer, '1.jsonl'), join(newer, '2.jsonl')])
  })

  test('is by the sessions of the same agent alone', () => {
    const text = words(report(foundOf(agentOf('Pi', 42.6), { ...agentOf('Codex', 10), sample: { sessions: 1, paid: 5, saved: 1 } }), []))
    expect(text).toMatch(/Pi 1 - \$42\.60 - Codex 1 - \$10\.00 ~\$8\.00 total 2 \$52\.60 - /)
    expect(text).toContain('With pi-context-manager those of Codex would have cost about 20 % less: an estimate, by a replay of the newest session')
    expect(text).toContain('Sessions of Pi could not be replayed here and have no estimate; ')
  })

  test('has the share of the dollars in the table', () => {
    const agents = [
      { ...agentOf('Pi', 90), sample: { sessions: 1, paid: 1, saved: 0 } },
      { ...agentOf('Codex', 10), sample: { sessions: 1, paid: 9, saved: 9 } },
    ]
    const text = words(report(foundOf(...agents), []))
    expect(text).toContain('~$90.00')
    expect(text).toContain('With pi-context-manager they would have cost about 10 % less')
  })

  test('counts what can’t be read, and reads the rest', async () => {
    const folder = copies(1)
    writeFileSync(join(folder, 'a.jsonl'), 'rubbish')
    writeFileSync(join(folder, 'b.jsonl.gz'), 'rubbish')
    expect(await looked(folder)).toMatchObject({ files: 3, read: 3, unreadable: 2, agents: [{ sessions: 1, sample: { sessions: 1 } }] })
  })
})

test.skipIf(process.platform === 'win32')('Ctrl-C ends it, and it prints what it knows', async () => {
  const { env } = usedHome()
  const bills = billsFile({ kind: 'sqlite', path: join(env['HOME'] as string, '.local/share/pi-context-manager/context.db') })
  mkdirSync(dirname(bills), { recursive: true })
  execFileSync('mkfifo', [bills])
  const child = spawn(...program(), { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  onCleanUp(() => void child.kill('SIGKILL'))
  const texts = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (texts.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (texts.err += text))
  // The pipe opens when the program reads what the gateway has noted.
  const noted = await open(bills, 'w')
  child.kill('SIGINT')
  await noted.close()
  const [code] = (await once(child, 'close')) as [number]
  expect([code, texts.err]).toEqual([130, 'stopped: these are the figures so far\n'])
  expect(texts.out).toContain('Commands:   pi-context-manager --help')
})

async function callsOf(file: string): Promise<Charge[]> {
  const charges: Charge[] = []
  for await (const charge of chargesOf(await openAny(file), new Set())) if (charge.calls > 0) charges.push(charge)
  return charges
}
