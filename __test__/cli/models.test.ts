/** The user's own prices of models: every command that prices an agent's file takes them from one file, with one result. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, fixture, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

/** A session of a model that the table does not know, whose last call found nothing in the cache. */
function session(folder: string): string {
  const file = join(folder, 'session.jsonl')
  const lines = readFileSync(fixture('claude-code.jsonl'), 'utf8').replaceAll('claude-opus-4-5-20251101', 'my-model').trimEnd().split('\n')
  const last = /"id":"(msg_[^"]+)"/.exec(lines.findLast((line) => line.includes('"msg_')) ?? '')?.[1] ?? ''
  const lost = lines.map((line) =>
    line.includes(last)
      ? line.replace(/"cache_read_input_tokens":(\d+),"cache_creation_input_tokens":0/, '"cache_read_input_tokens":0,"cache_creation_input_tokens":$1')
      : line,
  )
  writeFileSync(file, `${lost.join('\n')}\n`)
  return file
}

test.each([
  ['the name in the requests', 'my-model'],
  ['the name with its provider', 'anthropic/my-model'],
])('usage, replay and why count by the prices under %s', async (_what, name) => {
  const folder = temporaryFolder()
  const [file, models] = [session(folder), join(folder, 'models.json')]
  writeFileSync(models, JSON.stringify({ [name]: { input: 40, output: 200, cacheRead: 4, cacheWrite: 50 } }))
  const json = async (...args: string[]): Promise<unknown> => JSON.parse((await cli([...args, '--json'])).stdout)
  const { total } = (await json('usage', file, '--models', models)) as { total: { cost: number; unpricedCalls: number } }
  const { summary, sessions } = (await json('replay', file, '--policies', 'recorded,pi-context-manager', '--models', models)) as {
    summary: { accounts: { paid: number; plain: number }[] }
    sessions: { unit: string }[]
  }
  expect([total.unpricedCalls, sessions[0]?.unit]).toEqual([0, 'USD'])
  expect(total.cost).toBeGreaterThan(0.1)
  expect(summary.accounts[0]?.paid).toBeCloseTo(total.cost, 9)
  const [known, unknown] = [await json('why', file, '--models', models), await json('why', file)] as { breaks: { cost?: number }[] }[]
  expect(known?.breaks.map(({ cost = 0 }) => cost > 0)).toEqual([true])
  expect(unknown?.breaks.map(({ cost }) => cost)).toEqual([undefined])
})

test('a price that a file has itself is the one that was paid', async () => {
  const folder = temporaryFolder()
  const models = join(folder, 'models.json')
  const file = fixture('pi-version-3.jsonl')
  const used = [...readFileSync(file, 'utf8').matchAll(/"model":"([^"]+)"/g)].map(([, model = '']) => [model, { input: 1000 }])
  writeFileSync(models, JSON.stringify(Object.fromEntries(used)))
  const cost = async (...args: string[]): Promise<number> =>
    (JSON.parse((await cli(['usage', file, '--json', ...args])).stdout) as { total: { cost: number } }).total.cost
  expect(await cost('--models', models)).toBe(await cost())
})

test('prices of each model and prices of all at once are refused together', async () => {
  const folder = temporaryFolder()
  const models = join(folder, 'models.json')
  writeFileSync(models, '{}')
  const { code, stderr } = await cli(['replay', fixture('claude-code.jsonl'), '--models', models, '--read', '0.1'])
  expect([code, stderr]).toEqual([2, 'pi-context-manager: --models gives each model its prices, and --read and --write are those of all; give one of them\n'])
})
