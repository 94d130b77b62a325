/** One session of each agent: paid, without us and saved are the model server's own sums, to the cent, wherever they are shown. */
import { mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { summaryOf } from '../../lib/cli/gateway-summary.ts'
import { keepStatus } from '../../lib/cli/status-file.ts'
import { billsFile } from '../../lib/gateway/bills.ts'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { draw } from '../../lib/gateway/page/draw.ts'
import { callCost, pricesOf, readName } from '../../lib/models/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { PrefixCache } from '../../rig/meter.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { lastOf } from '../../rig/request.ts'
import { AnthropicLoop, gatewayTo, long } from '../gateway/support.ts'
import { AGENTS, talk } from '../gateway/wire-agents.ts'
import { command, lines, put, setUp } from '../pi/support.ts'
import { cli, UNHURRIED } from '../replay/support.ts'
import { emptyHome } from './home.ts'
import type { Home } from './home.ts'

afterEach(cleanUp)

/** The three figures in dollars, and the saved share in percent, as they are shown. */
interface Figures {
  paid: string
  without: string
  saved: string
  share: string
}

/** The account in words, as every surface has it. */
// On a page, a figure and its percent sign are not divided.
const ACCOUNT = /[Ss]aved \$(?<saved>[\d.]+) \((?<share>\d+)[ \u00A0]%\): paid \$(?<paid>[\d.]+), without pi-context-manager \$(?<without>[\d.]+)/

function figuresIn(text: string): Figures | undefined {
  const { paid = '', without = '', saved = '', share = '' } = ACCOUNT.exec(text)?.groups ?? {}
  return paid === '' ? undefined : { paid, without, saved, share }
}

/** The figures belong together: what was charged, and a difference and a share that follow from the two others. */
function expectSound({ paid, without, saved, share }: Figures, charged: number): void {
  expect(paid).toBe(charged.toFixed(2))
  expect(Number(saved)).toBeGreaterThan(0.01)
  expect(Math.abs(Number(without) - Number(paid) - Number(saved))).toBeLessThan(0.0101)
  expect(Math.abs(Number(share) - (100 * Number(saved)) / Number(without))).toBeLessThan(0.5 + 1 / Number(without))
}

/** Every command that tells what the only session has cost tells the same. */
async function expectCommands({ env, file }: Home, store: string, own: string, figures: Figures): Promise<void> {
  const { paid, without, saved, share } = figures
  const usage = await cli(['usage', '--store', store], env)
  expect(usage.stdout).toMatch(new RegExp(`paid +without +saved +share\\n[^]*total .* \\$${paid} +\\$${without} +\\$${saved} +${share} %`))
  const { total } = JSON.parse((await cli(['usage', '--json', '--store', store], env)).stdout) as { total: { cost: number; saved: number; plainCost: number } }
  expect([total.cost.toFixed(2), total.plainCost.toFixed(2), total.saved.toFixed(2)]).toEqual([paid, without, saved])

  expect((await cli(['sessions', '--lines', '--store', store], env)).stdout).toContain(`paid $${paid}, saved $${saved}`)
  const report = file('report.html')
  const { stdout } = await cli(['replay', own, '--html', report, '--json'], env)
  const { sessions } = JSON.parse(stdout) as { sessions: { isManaged: boolean; recordedSaved: number; paid: { cost: number; answers: number } }[] }
  expect(sessions.map(({ isManaged, recordedSaved, paid: { cost, answers } }) => [isManaged, recordedSaved.toFixed(2), (cost + answers).toFixed(2)])).toEqual([
    [true, saved, paid],
  ])
  const page = readFileSync(report, 'utf8')
  expect(figuresIn(/<h1>(.*?)<\/h1>/.exec(page)?.[1] ?? '')).toEqual(figures)
  expect(figuresIn(/<summary>(<b>.*?)<\/summary>/.exec(page)?.[1] ?? '')).toEqual(figures)
  expect(figuresIn((await cli(['replay', own], env)).stdout)).toEqual(figures)
  // Beside another session it is in the list of those with the context manager.
  const listed = (await cli(['replay', own, otherSession(file)], env)).stdout
  expect(listed).toMatch(
    new RegExp(`with pi-context-manager, by what it saved\\n.* paid +without +saved +share\\n.* \\$${paid} +\\$${without} +\\$${saved} +${share} %`),
  )
  const { stdout: around } = await cli([], { ...UNHURRIED, ...env, PATH: '' })
  expect(around.replaceAll(/\s+/g, ' ')).toContain(`It ran in sessions that cost $${paid}, and saved $${saved} there by its own account.`)
}

/** A session that the gateway does not know. */
function otherSession(file: Home['file']): string {
  const path = file('other.jsonl')
  const at = '2026-03-01T11:00:00.000Z'
  const rows = [
    {
      type: 'user',
      uuid: 'u',
      parentUuid: null,
      sessionId: '77777777-1111-4222-8333-444455556666',
      cwd: '/w',
      timestamp: at,
      message: { role: 'user', content: 'hi' },
    },
    {
      type: 'assistant',
      uuid: 'v',
      parentUuid: 'u',
      sessionId: '77777777-1111-4222-8333-444455556666',
      cwd: '/w',
      timestamp: at,
      message: {
        id: 'msg_o',
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content: [{ type: 'text', text: 'hello' }],
        usage: { input_tokens: 31, output_tokens: 2 },
      },
    },
  ]
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  return path
}

/** A gateway that keeps its bills where the commands of a home look for them. */
async function billing(
  url: string,
  options: Parameters<typeof gatewayTo>[1],
): Promise<{ home: ReturnType<typeof emptyHome>; store: string; gateway: Gateway }> {
  const home = emptyHome()
  const store = home.file('.local/share/pi-context-manager/context.db')
  const billsPath = billsFile({ kind: 'sqlite', path: store })
  mkdirSync(dirname(billsPath), { recursive: true })
  const { gateway } = await gatewayTo(url, { store: { kind: 'sqlite', path: store }, billsPath, ...options })
  return { home, store, gateway }
}

test.each(Object.entries(AGENTS))('%s, through the gateway', async (_name, agent) => {
  const cache = new PrefixCache()
  const server = await startModelServer(({ prompt }) => {
    const { prompt: size, cached } = cache.add(prompt)
    const fresh = size - cached
    return { text: 'ok', usage: { input: agent.writes ? 0 : fresh, cacheRead: cached, cacheWrite: agent.writes ? fresh : 0, output: 40 } }
  })
  const { home, store, gateway } = await billing(server.url, {})
  const status = home.file('status.json')
  const end = keepStatus(gateway, status)
  await talk(gateway, agent)
  const prices = pricesOf(readName(agent.model))!
  const usages = server.requests.map(({ usage }: ModelRequest) => usage!)
  const charged = usages.reduce((sum, usage) => sum + callCost(prices, usage), 0)

  const figures = figuresIn(summaryOf(gateway.ledger).join())!
  expectSound(figures, charged)
  const { paid, without, saved, share } = figures
  const { regions } = draw(gateway.ledger.sessions, gateway.ledger.sessions[0], undefined)
  expect(figuresIn(regions['totals']!)).toEqual(figures)
  expect(regions['figures']).toContain(`<b>${share}\u00A0%</b><span>saved, estimated`)
  expect(regions['figures']).toContain(`<b>$${paid}</b><span>paid; without pi-context-manager $${without}`)

  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (!readFileSync(status, { encoding: 'utf8', flag: 'a+' }).includes(`saved $${saved} (${share} %)`)) return
      watcher.close()
      resolve()
    }
    const watcher = watch(dirname(status), look)
    look()
  })
  end()
  await gateway.close()

  const own = home.file(agent.path)
  agent.write(own, usages, new Date().toISOString())
  await expectCommands(home, store, own, { paid, without, saved, share })
})

const GIVEN = { input: 100, output: 400, cacheRead: 90, cacheWrite: 101 }

test.each(['claude-sonnet-4-5', 'my-model'])('%s at prices that the user gave, for decisions, bills and all that shows them', async (model) => {
  const cache = new PrefixCache()
  const server = await startModelServer(({ prompt }) => {
    const { prompt: size, cached } = cache.add(prompt)
    return { text: 'ok', usage: { input: 0, cacheRead: cached, cacheWrite: size - cached, output: 40 } }
  })
  const { home, store, gateway } = await billing(server.url, {
    models: { [model]: { contextWindow: 200_000, ...GIVEN } },
  })
  const loop = new AnthropicLoop(gateway)
  loop.model = model
  for (let n = 0; n < 30; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  const charged = server.requests.map(({ usage }: ModelRequest) => callCost(GIVEN, usage!))
  const paid = charged.reduce((sum, one) => sum + one, 0).toFixed(2)

  expect(summaryOf(gateway.ledger).join()).toContain(`paid $${paid}, without pi-context-manager $`)
  const { regions, lists } = draw(gateway.ledger.sessions, gateway.ledger.sessions[0], undefined)
  expect(regions['totals']).toContain(`paid $${paid}, `)
  expect(regions['figures']).toContain(`<b>$${paid}</b><span>paid; without pi-context-manager $`)
  const shown = Object.values(lists).flatMap((rows) => rows.flatMap(([, row]) => /<td class="n">\$([\d.]+)<\/td>/.exec(row)?.[1] ?? []))
  expect(shown.toSorted()).toEqual(charged.map((one) => one.toFixed(3)).toSorted())
  await gateway.close()

  // Another process has no more than the file.
  const usage = await cli(['usage', '--store', store, '--json'], home.env)
  const { total } = JSON.parse(usage.stdout) as { total: { cost: number; unpricedCalls: number } }
  expect([total.cost.toFixed(2), total.unpricedCalls, usage.stderr]).toEqual([paid, 0, ''])
  expect((await cli(['sessions', '--lines', '--store', store], home.env)).stdout).toContain(`paid $${paid}`)
  const own = home.file(AGENTS['Claude Code']!.path)
  AGENTS['Claude Code']!.write(
    own,
    server.requests.map(({ usage }: ModelRequest) => usage!),
    new Date().toISOString(),
  )
  const { stdout: around } = await cli([], { ...UNHURRIED, ...home.env, PATH: '' })
  expect(around).toContain(`$${paid}`)
})

test('Pi', async () => {
  const { server, home, store, load } = await setUp(
    (request, n) => {
      const name = /read (\w+)$/m.exec(lastOf(request, 'user')!.text)?.[1]
      return request.messages.at(-1)!.role === 'user' ? calls(['read', { path: `${name}.txt` }, `call_${n}`]) : { text: `answer about ${name}` }
    },
    { model: { cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 } } },
  )
  const rpc = await startRpc(load)
  for (let n = 0; n < 14; n += 1) {
    put(home, `f${n}.txt`, lines(`f${n}`, 500))
    await rpc.prompt(`read f${n}`)
  }
  await command(rpc, '/context roll')
  for (let n = 0; n < 6; n += 1) await rpc.prompt(`read f${n}`)
  const screen = (await command(rpc, '/context')).join('\n')
  const { sessionFile } = await rpc.state()
  const statuses = rpc.events.flatMap((event) =>
    event.type === 'extension_ui_request' && event['method'] === 'setStatus' ? [String(event['statusText'] ?? '')] : [],
  )
  await rpc.close()
  const charged = server.requests.reduce((sum, { usage }) => sum + (3 * usage!.input + 0.3 * usage!.cacheRead + 15 * usage!.output) / 1e6, 0)

  const [, saved = '', share = ''] = /Saved \$([\d.]+) \((\d+) %\)/.exec(screen) ?? []
  const [, paid = '', without = ''] = /Paid \$([\d.]+), without pi-context-manager \$([\d.]+)/.exec(screen) ?? []
  const figures = { paid, without, saved, share }
  expectSound(figures, charged)
  expect(statuses.at(-1)).toContain(`context: saved $${saved}`)
  const around = emptyHome()
  await expectCommands({ ...around, env: { ...around.env, PI_CODING_AGENT_DIR: home.agentDir } }, store, sessionFile, figures)
})
