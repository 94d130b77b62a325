/** One session of an agent through the gateway: paid, without us and saved are the same on each surface, to the cent. */
import { mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { summaryOf } from '../../lib/cli/gateway-summary.ts'
import { keepStatus } from '../../lib/cli/status-file.ts'
import { billsFile } from '../../lib/gateway/bills.ts'
import { draw } from '../../lib/gateway/page/draw.ts'
import { callCost, pricesOf, readName } from '../../lib/models/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { PrefixCache } from '../../rig/meter.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { folder } from '../core/setup.ts'
import { cli } from '../replay/support.ts'
import { AnthropicLoop, gatewayTo, long } from './support.ts'

afterEach(cleanUp)

const ID = '9f3a1b2c-1111-4222-8333-444455556666'
const MODEL = 'claude-sonnet-4-5'

test('page, summary, status line and usage say what the model server has charged', async () => {
  const cache = new PrefixCache()
  const server = await startModelServer(({ prompt }) => {
    const { prompt: size, cached } = cache.add(prompt)
    return { text: 'ok', usage: { input: 0, cacheRead: cached, cacheWrite: size - cached, output: 40 } }
  })
  const home = folder()
  const store = join(home, 'context.db')
  const bills = billsFile({ kind: 'sqlite', path: store })
  mkdirSync(dirname(bills), { recursive: true })
  const { gateway } = await gatewayTo(server.url, { store: { kind: 'sqlite', path: store }, billsPath: bills, program: 'claude-code' })
  const status = join(home, 'status.json')
  const end = keepStatus(gateway, status)
  const loop = new AnthropicLoop(gateway, ID)
  loop.messages.push({ role: 'user', content: 'begin' })
  for (let n = 0; n < 40; n += 1) await loop.call('Read', { file_path: `/w/n${n}.ts` }, long(`n${n}`))
  expect(gateway.ledger.sessions[0]?.rolls.length).toBeGreaterThan(0)

  // The server's own sums.
  const prices = pricesOf(readName(MODEL))
  const charged = server.requests.reduce((sum, { usage }) => sum + (prices === undefined || usage === undefined ? Number.NaN : callCost(prices, usage)), 0)
  const paid = `$${charged.toFixed(2)}`

  const [, saved = '', share = '', said, without = ''] = /saved (\$[\d.]+) \((\d+) %\): paid (\$[\d.]+), without pi-context-manager (\$[\d.]+)/.exec(summaryOf(gateway.ledger).join()) ?? []
  expect(said).toBe(paid)
  expect(Math.abs(Number(without.slice(1)) - charged - Number(saved.slice(1)))).toBeLessThan(0.011)
  expect([charged > 0.1, Number(saved.slice(1)) > 0.01]).toEqual([true, true])

  const [sums] = gateway.ledger.sessions
  const { regions } = draw(gateway.ledger.sessions, sums, undefined)
  expect(regions['totals']).toContain(`saved ${saved} (${share} %): paid ${paid}, without pi-context-manager ${without}`)
  expect(regions['figures']).toContain(`<b>${share} %</b><span>saved, estimated`)
  const [, figure = '', would = ''] = /<b>(\$[\d.]+)<\/b><span>paid; without pi-context-manager (\$[\d.]+)/.exec(regions['figures'] ?? '') ?? []
  // The figure has more digits than the sum: rounding it again could be a cent off.
  expect(Math.abs(Number(figure.slice(1)) - charged)).toBeLessThan(0.005)
  expect(Math.abs(Number(would.slice(1)) - Number(without.slice(1)))).toBeLessThan(0.0051)

  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (!readFileSync(status, { encoding: 'utf8', flag: 'a+' }).includes(`saved ${saved} (${share} %)`)) return
      watcher.close()
      resolve()
    }
    const watcher = watch(home, look)
    look()
  })
  end()
  await gateway.close()

  const { stdout } = await cli(['usage', '--json', '--store', store], { HOME: home, CLAUDE_CONFIG_DIR: '', PI_CODING_AGENT_DIR: '', CODEX_HOME: '', GEMINI_CLI_HOME: '' })
  const { total } = JSON.parse(stdout) as { total: { cost: number; saved: number; plainCost: number } }
  expect([total.cost.toFixed(2), total.saved.toFixed(2), total.plainCost.toFixed(2)]).toEqual([charged.toFixed(2), saved.slice(1), without.slice(1)])

  // Claude Code's own file tells of the same calls, and changes nothing.
  const lines = server.requests.map(({ usage }, n) => ({
    ...{ type: 'assistant', uuid: `a${n}`, parentUuid: n === 0 ? null : `a${n - 1}`, sessionId: ID, cwd: '/w', timestamp: new Date().toISOString() },
    message: { id: `msg_${n}`, role: 'assistant', model: MODEL, content: [{ type: 'text', text: 'ok' }], usage: { input_tokens: usage?.input, cache_read_input_tokens: usage?.cacheRead, cache_creation_input_tokens: usage?.cacheWrite, output_tokens: usage?.output } },
  }))
  const file = join(home, '.claude', 'projects', '-w', `${ID}.jsonl`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const again = await cli(['usage', '--json', '--store', store], { HOME: home, CLAUDE_CONFIG_DIR: '', PI_CODING_AGENT_DIR: '', CODEX_HOME: '', GEMINI_CLI_HOME: '' })
  expect((JSON.parse(again.stdout) as { total: object }).total).toEqual(total)
})
