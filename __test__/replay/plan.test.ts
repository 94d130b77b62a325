/** Sessions on a plan at a flat rate: tokens and room in the window in every report, and no dollars. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { billsFile } from '../../lib/gateway/bills.ts'
import { isOnPlan, PlanSums } from '../../lib/replay/plan-calls.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { emptyHome } from '../cli/home.ts'
import type { Home } from '../cli/home.ts'
import { cli, UNHURRIED } from './support.ts'

afterEach(cleanUp)

const AT = Date.parse('2026-03-01T10:00:00Z')
const ID = '9f3a1b2c-1111-4222-8333-444455556666'

/** The sent tokens of the calls of a session, of which a third came from the cache. */
const SENT = [30_000, 60_000, 90_000]

function put(home: Home, path: string, lines: readonly object[]): string {
  const file = home.file(path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

/** A session of Claude Code, the first `onPlan` calls of which the gateway has noted as those of a plan, edited or held out. */
function ofClaude(home: Home, onPlan: number, isHeldOut = false): string {
  const usage = SENT.map((sent) => ({ input: 0, cacheRead: sent / 3, cacheWrite: (2 * sent) / 3, output: 100 }))
  const bills = billsFile({ kind: 'sqlite', path: home.file('.local/share/pi-context-manager/context.db') })
  const own = (n: number): object => ({ ...usage[n]!, cacheRead: usage[n]!.cacheRead + 20_000 })
  const noted = usage.map((billed, n) => ({
    at: AT + n,
    session: `claude-code:${ID}`,
    folder: '/w',
    model: 'claude-sonnet-4-5',
    billed,
    plain: isHeldOut ? billed : own(n),
    isHeldOut,
    ...(n < onPlan && { isPlan: true }),
  }))
  put(home, bills.slice(home.home.length), noted)
  const at = (n: number): object => ({ sessionId: ID, cwd: '/w/shop', timestamp: new Date(AT + n).toISOString() })
  const lines = usage.flatMap(({ input, cacheRead, cacheWrite, output }, n) => [
    {
      type: 'user',
      uuid: `u${n}`,
      parentUuid: n === 0 ? null : `a${n - 1}`,
      ...at(n),
      message: { role: 'user', content: `prompt ${n} ${'text '.repeat(4000 * (n + 1))}` },
    },
    {
      type: 'assistant',
      uuid: `a${n}`,
      parentUuid: `u${n}`,
      ...at(n),
      message: {
        id: `msg_${n}`,
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content: [{ type: 'text', text: 'ok' }],
        usage: { input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite, output_tokens: output },
      },
    },
  ])
  return put(home, `.claude/projects/-w/${ID}.jsonl`, lines)
}

/** The same of Pi, where the context manager notes what a plan has paid for: after each call all of it so far. */
function ofPi(home: Home, onPlan: number): string {
  let [sent, without, parent] = [0, 0, null as string | null]
  const entry = (id: string, more: object): object => {
    const line = { id, parentId: parent, timestamp: new Date(AT + Number(id.slice(1))).toISOString(), ...more }
    parent = id
    return line
  }
  const lines = SENT.flatMap((tokens, n) => {
    sent += n < onPlan ? tokens : 0
    without += n < onPlan ? tokens + 20_000 : 0
    const usage = { input: 0, output: 100, cacheRead: tokens / 3, cacheWrite: (2 * tokens) / 3, totalTokens: tokens + 100 }
    return [
      entry(`u${n}`, { type: 'message', message: { role: 'user', content: `prompt ${n} ${'text '.repeat(4000 * (n + 1))}`, timestamp: AT + n } }),
      entry(`a${n}`, {
        type: 'message',
        message: {
          role: 'assistant',
          content: [{ type: 'text', text: 'ok' }],
          provider: 'anthropic',
          model: 'claude-sonnet-4-5',
          stopReason: 'stop',
          usage,
          timestamp: AT + n,
        },
      }),
      entry(`p${n}`, {
        type: 'custom',
        customType: 'pi-context-manager',
        data: { session: 's', tx: n + 1, saved: 20_000 * (n + 1), dollars: 0.006 * (n + 1), ...(sent > 0 && { plan: { sent, without } }) },
      }),
    ]
  })
  return put(home, '.pi/agent/sessions/--w--/2026_0199aaaa-1.jsonl', [
    { type: 'session', version: 3, id: '0199aaaa-1', timestamp: new Date(AT).toISOString(), cwd: '/w/shop' },
    ...lines,
  ])
}

const ACCOUNT = 'aved 60k tokens (25 %): sent 180k tokens, without pi-context-manager 240k tokens'

/** The texts in which a run tells of its sessions: of all surfaces of `replay`. */
async function told({ env, file }: Home, ...files: readonly string[]): Promise<{ text: string; page: string; json: any }> {
  const html = file('report.html')
  const shown = await cli(['replay', ...files, '--html', html], { ...env, COLUMNS: '200' })
  expect(shown.code).toBe(0)
  const { stdout } = await cli(['replay', ...files, '--json'], env)
  return {
    text: `${shown.stdout}${shown.stderr}`,
    page: readFileSync(html, 'utf8')
      .replace(/<style>.*?<\/style>/s, '')
      .replaceAll('\u00A0', ' '),
    json: JSON.parse(stdout),
  }
}

describe.each([
  ['Claude Code', ofClaude],
  ['Pi', ofPi],
])('%s', (_agent, write) => {
  test('all calls on a plan: the account is in tokens, without dollars', async () => {
    const home = emptyHome()
    const { text, page, json } = await told(home, write(home, 3))
    expect(text).toContain(`On a plan at a flat rate: s${ACCOUNT}, for one session`)
    expect(text).toMatch(/least room in the window of 200k +\d+k/)
    expect(page).toContain(`<h1>S${ACCOUNT}</h1>`)
    expect(page).toMatch(new RegExp(`<summary><b>[^<]+</b>, s${ACCOUNT.replaceAll(/[()]/g, '\\$&')}`))
    expect(page).not.toContain('Cost over calls')
    expect(
      [text, page].filter(
        (shown) => shown.includes('$') || /\bcosts? |\bpaid\b/.test(shown.replaceAll(/tokens gone|cost once|costs? (?:\d|fresh)|pays? after[^<]*/g, '')),
      ),
    ).toEqual([])
    expect(json.sessions[0].plan).toEqual({ calls: 3, sent: 180_000, without: 240_000 })
    expect(json.summary.accounts).toMatchObject([{ kind: 'managed', isPlan: true, paid: 180_000, plain: 240_000 }])
    const usage = await cli(['usage'], home.env)
    expect(usage.stdout.replaceAll(/\s+/g, ' ')).toContain(`count in tokens: s${ACCOUNT}`)
    const around = await cli([], { ...UNHURRIED, ...home.env, PATH: '' })
    expect(around.stdout).toMatch(/^(?:Pi|Claude Code) +1 +2026-03-01 +plan +-$/m)
    expect(around.stdout.replaceAll(/\s+/g, ' ')).toContain(`3 calls were made on a plan at a flat rate, and count in tokens: s${ACCOUNT}.`)
    expect(around.stdout).not.toContain('$')
    expect(around.stdout).toContain('Go on with: pi-context-manager usage\n')
  })

  test('beside a session that was paid: each in its own list, sum and sentence', async () => {
    const [home, other] = [emptyHome(), emptyHome()]
    const { text, page, json } = await told(home, write(home, 3), ofCodex(other))
    expect(text).toMatch(/on a plan at a flat rate, with pi-context-manager, by what it saved\n.* sent +without +saved +share\n.* 180k +240k +60k +25 %\n/)
    expect(text).toContain(`s${ACCOUNT}, for one session`)
    expect(text).toContain('You paid $0.10 in Codex')
    expect(text).toContain('costs without those of one session on a plan at a flat rate')
    expect(page).toContain('<h1>You paid $0.10 in Codex')
    const { policies } = json.sessions.find(({ format }: { format: string }) => format === 'codex')
    expect(json.summary.policies.recorded.cost).toBeCloseTo(policies.recorded.cost, 6)
  })

  test('some calls on a plan: list prices, and a line that says so', async () => {
    const home = emptyHome()
    const { text, json } = await told(home, write(home, 1))
    expect(json.sessions[0].plan).toEqual({ calls: 1, sent: 30_000, without: 50_000 })
    expect(text).toContain('1 of 3 calls was made on a plan at a flat rate, and counts at its list price')
    expect(text).toMatch(/aved \$/)
  })

  test('no call on a plan: dollars', async () => {
    const home = emptyHome()
    const { text, json } = await told(home, write(home, 0))
    expect(json.sessions[0].plan).toBeUndefined()
    expect(text).toMatch(/aved \$/)
    expect(text).not.toContain('plan at a flat rate')
  })
})

test('a session that was held out on a plan would have sent less', async () => {
  const home = emptyHome()
  const { text, page } = await told(home, ofClaude(home, 3, true))
  expect(text).toMatch(
    /On a plan at a flat rate: you sent 180k tokens in Claude Code for one session with 3 answers on \S+\. Through the gateway they would have sent about \d+k tokens \((?:\d+ % (?:less|more)|the same)\), on the same cache and window/,
  )
  expect(`${text}${page}`).not.toContain('$')
})

/** A session of Codex that was paid: $0.10. */
function ofCodex(home: Home): string {
  const timestamp = new Date(AT).toISOString()
  return put(home, `.codex/sessions/2026/03/01/rollout-2026-03-01-0199c0de-1111-4222-8333-444455556666.jsonl`, [
    { timestamp, type: 'session_meta', payload: { id: '0199c0de-1111-4222-8333-444455556666', cwd: '/w/shop' } },
    { timestamp, type: 'turn_context', payload: { model: 'gpt-5.5' } },
    { timestamp, type: 'response_item', payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] } },
    { timestamp, type: 'response_item', payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hello' }] } },
    {
      timestamp,
      type: 'event_msg',
      payload: {
        type: 'token_count',
        info: { total_token_usage: { input_tokens: 20_000 }, last_token_usage: { input_tokens: 20_000, cached_input_tokens: 400, output_tokens: 10 } },
      },
    },
  ])
}

test.each<[name: string, calls: ('plan' | 'paid' | 'uncounted')[], onPlan: boolean]>([
  ['all on a plan', ['plan', 'plan'], true],
  ['one of them interrupted, without a count', ['plan', 'uncounted', 'plan'], true],
  ['one of them paid', ['plan', 'paid'], false],
  ['none counted', ['uncounted'], false],
])('a session with calls that are %s', (_, calls, onPlan) => {
  const plan = new PlanSums()
  const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 1 }
  for (const kind of calls) plan.call({ usage: kind === 'uncounted' ? undefined : { ...usage, ...(kind === 'plan' && { isPlan: true }) } }, undefined)
  expect(isOnPlan({ ...(plan.sums.calls > 0 && { plan: plan.sums }), calls: calls.length })).toBe(onPlan)
})
