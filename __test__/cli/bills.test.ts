/** The bills of recorded sessions: by lifetime, by response, each call once, whatever the counts are. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { allSessionFiles, openAny } from '../../lib/recordings/open.ts'
import { chargesOf } from '../../lib/usage/charges.ts'
import type { Charge } from '../../lib/usage/charges.ts'
import { cacheHistory } from '../../lib/usage/breaks.ts'
import { gatewayHistories } from '../../lib/usage/gateway-breaks.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

type Counts = Record<string, unknown>

const OPUS = 'claude-opus-4-5-20251101'
const SONNET = 'claude-sonnet-5'

let number = 0
/** A line of a transcript; lines follow each other in seconds. */
function line(session: string, type: 'user' | 'assistant', message: object, more: object = {}): object {
  number += 1
  const uuid = `u${number}`
  const timestamp = new Date(Date.parse('2026-07-01T10:00:00Z') + 1000 * number).toISOString()
  return { uuid, parentUuid: null, type, timestamp, sessionId: session, cwd: '/w/shop', message: { role: type, ...message }, ...more }
}

function answer(
  id: string,
  usage: Counts | undefined,
  { model = OPUS, session = 's', ...more }: { model?: string; session?: string; isSidechain?: boolean; agentId?: string } = {},
): object {
  return line(session, 'assistant', { id, model, content: [{ type: 'text', text: id }], ...(usage && { usage }) }, more)
}

const prompt = (text: string, more: object = {}): object => line('s', 'user', { content: text }, more)

/** Written tokens, a million of input being a million of the model's fresh tokens. */
const written = (all: number, split: Counts): Counts => ({
  input_tokens: 0,
  output_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: all,
  cache_creation: split,
})

function write(path: string, lines: readonly object[]): string {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, lines.map((one) => `${JSON.stringify(one)}\n`).join(''))
  return path
}

async function charged(...paths: string[]): Promise<{ cost: number; calls: number; charges: Charge[]; repeated: { calls: number; cost: number } }> {
  const seen = new Set<string>()
  const repeated = { calls: 0, cost: 0 }
  const charges: Charge[] = []
  for (const file of await allSessionFiles(paths, (_, error) => expect(error).toBeUndefined()))
    for await (const charge of chargesOf(await openAny(file), seen, repeated)) charges.push(charge)
  return { cost: charges.reduce((sum, { cost = 0 }) => sum + cost, 0), calls: charges.reduce((sum, { calls }) => sum + calls, 0), charges, repeated }
}

describe('written tokens are priced by the lifetime that they were written with', () => {
  test.each([
    ['five minutes', written(1e6, { ephemeral_5m_input_tokens: 1e6, ephemeral_1h_input_tokens: 0 }), 6.25],
    ['an hour', written(1e6, { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1e6 }), 10],
    ['both', written(1e6, { ephemeral_5m_input_tokens: 4e5, ephemeral_1h_input_tokens: 6e5 }), 8.5],
    ['a split that says less than the total', written(1e6, { ephemeral_1h_input_tokens: 6e5 }), 8.5],
    ['no split', { cache_creation_input_tokens: 1e6, input_tokens: 0, output_tokens: 0 }, 6.25],
    ['a split alone', { input_tokens: 0, output_tokens: 0, cache_creation: { ephemeral_1h_input_tokens: 1e6 } }, 10],
  ])('%s', async (_, usage, dollars) => {
    const file = write(join(temporaryFolder(), 's.jsonl'), [prompt('go'), answer('m1', usage)])
    const { cost, charges } = await charged(file)
    expect(cost).toBeCloseTo(dollars, 9)
    expect(charges[0]?.isDoubtful).toBeUndefined()
  })

  test('usage, replay and why say the same', async () => {
    const split = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1e5 }
    const calls = [1, 2, 3].map((n) => answer(`m${n}`, written(1e5, split)))
    const file = write(
      join(temporaryFolder(), 's.jsonl'),
      calls.flatMap((call, n) => [prompt(`go ${n}`), call]),
    )
    expect((await charged(file)).cost).toBeCloseTo(3, 9)
    const report = JSON.parse((await cli(['replay', file, '--json', '--policies', 'pi'])).stdout)
    expect(report.sessions[0].recordedCost).toBeCloseTo(3, 9)
    // All of the second and third prompt was written again instead of read.
    const { breaks } = JSON.parse((await cli(['why', file, '--json'])).stdout)
    expect(breaks).toEqual([])
    const read = [answer('r1', written(1e5, split)), answer('r2', { ...written(1e5, split), cache_read_input_tokens: 10 })]
    const broken = write(join(temporaryFolder(), 's.jsonl'), [prompt('a'), read[0] as object, prompt('b'), read[1] as object])
    expect(JSON.parse((await cli(['why', broken, '--json'])).stdout).breaks[0].cost).toBeCloseTo((1e5 - 10) * (10 - 0.5) * 1e-6, 4)
  })
})

test.each<[options: string[]]>([[['--read', '0.1']], [['--write', '2']], [['--read', '0.1', '--write', '2']]])(
  'replay with %j: what no option names is as recorded',
  async (given) => {
    const split = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1e5 }
    const calls = [1, 2, 3].map((n) => answer(`m${n}`, { ...written(1e5, split), cache_read_input_tokens: n === 1 ? 0 : 1e5 }))
    const file = write(
      join(temporaryFolder(), 's.jsonl'),
      calls.flatMap((call, n) => [prompt(`go ${n}`), call]),
    )
    const paid = async (options: string[]): Promise<number> => {
      const { sessions } = JSON.parse((await cli(['replay', file, '--json', '--policies', 'pi', ...options])).stdout)
      return sessions[0].paid.cost
    }
    // Opus 4.5: 5 dollars for a million fresh tokens; it writes for an hour at twice that, and reads at a tenth.
    expect(await paid([])).toBeCloseTo((3e5 * 10 + 2e5 * 0.5) / 1e6, 6)
    expect(await paid(given)).toBeCloseTo(3e5 * 2 + 2e5 * 0.1, 0)
  },
)

test('an answer has one bill, although its user typed while it came', async () => {
  const [early, last] = [1, 5_000].map((output_tokens) => ({ ...written(20_000, { ephemeral_5m_input_tokens: 20_000 }), output_tokens }))
  const result = line('s', 'user', { content: [{ type: 'tool_result', tool_use_id: 't', content: 'fine' }] })
  const file = write(join(temporaryFolder(), 's.jsonl'), [
    prompt('go'),
    answer('m1', early),
    result,
    prompt('and this'),
    answer('m1', last),
    prompt('next'),
    answer('m2', last),
  ])
  const { charges } = await charged(file)
  expect(charges.map(({ tokens }) => tokens.output)).toEqual([5_000, 5_000])
  const roles = []
  for await (const step of (await openAny(file)).steps(() => {})) roles.push(step.kind === 'message' ? step.entry.message.role : step.kind)
  expect(roles).toEqual(['user', 'assistant', 'toolResult', 'user', 'user', 'assistant'])
})

describe("losses in a gateway's notes", () => {
  const LOST = 1e5
  test.each([
    ['five minutes', { cacheWrite: 2e5 }, LOST * (6.25 - 0.5)],
    ['an hour', { cacheWrite: 2e5, cacheWriteHour: 2e5 }, LOST * (10 - 0.5)],
    ['half of each', { cacheWrite: 2e5, cacheWriteHour: 1e5 }, LOST * ((6.25 + 10) / 2 - 0.5)],
    ['nothing written', { input: 2e5 }, LOST * (5 - 0.5)],
  ])('%s', async (_, counts, millionths) => {
    const billed = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, ...counts }
    const broken = { tokens: LOST, by: 'unknown', causes: ['Not known.'] }
    const call = { at: 1e12, session: 'claude-code:s', folder: '/w', model: OPUS, billed, plain: billed, isHeldOut: false, broken }
    const file = write(join(temporaryFolder(), 'bills.jsonl'), [call])
    const history = (await gatewayHistories(file, () => true)).get('claude-code:s')
    expect(history?.breaks.map(({ cost }) => cost)).toEqual([expect.closeTo(millionths / 1e6, 9)])
  })
})

describe('what a session file says of a lost cache', () => {
  const causes = async (lines: object[]): Promise<[by: string, causes: string[]][]> => {
    const file = write(join(temporaryFolder(), 's.jsonl'), lines)
    const { breaks } = await cacheHistory(await openAny(file))
    return breaks.map(({ by, causes }) => [by, causes])
  }
  const cached = (prompt: number, read: number): Counts => ({
    ...written(prompt - read, { ephemeral_5m_input_tokens: prompt - read }),
    cache_read_input_tokens: read,
  })

  test.each<[how: string, prompt: number, told: [string, string[]]]>([
    ['Claude Code has cleared outputs', 60_000, ['host', ['The agent sent 40k tokens less than before: it has cleared or removed earlier text.']]],
    ['nothing tells', 101_000, ['unknown', [expect.stringMatching(/^Nothing in the session explains it/)]]],
  ])('%s', async (_, size, told) => {
    const lines = [
      prompt('go'),
      answer('m1', cached(99_000, 0)),
      prompt('on'),
      answer('m2', cached(100_000, 99_000)),
      prompt('more'),
      answer('m3', cached(size, 10_000)),
    ]
    expect(await causes(lines)).toEqual([told])
  })

  test.each<[before: string | undefined, now: string | undefined, told: string]>([
    ['high', 'low', 'The level of thinking changed from high to low.'],
    ['low', 'low', 'Nothing in the session explains it'],
    [undefined, 'low', 'Nothing in the session explains it'],
  ])('Codex, from %s to %s', async (before, now, told) => {
    const context = (effort?: string): object => ({ type: 'turn_context', payload: { model: 'gpt-5.5', ...(effort !== undefined && { effort }) } })
    const said = (text: string, input: number, read: number): object[] => [
      { type: 'response_item', payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } },
      { type: 'response_item', payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] } },
      {
        type: 'event_msg',
        payload: {
          type: 'token_count',
          info: { last_token_usage: { input_tokens: input, cached_input_tokens: read, output_tokens: 5 }, total_token_usage: { total_tokens: input } },
        },
      },
    ]
    const lines = [
      { type: 'session_meta', payload: { id: 'c', cwd: '/w', source: 'cli' } },
      context(before),
      ...said('one', 50_000, 0),
      ...said('two', 51_000, 50_000),
      context(now),
      ...said('three', 52_000, 1_000),
    ]
    const found = await causes(lines.map((one, n) => ({ timestamp: new Date(Date.parse('2026-09-01T10:00:00Z') + n * 1000).toISOString(), ...one })))
    expect(found.map(([, sentences]) => sentences.join(' '))).toEqual([expect.stringContaining(told)])
  })
})

describe('Codex', () => {
  const meta = (id: string, more: object = {}): object => ({ type: 'session_meta', payload: { id, cwd: '/w/shop', source: 'cli', ...more } })
  const context = (model: string): object => ({ type: 'turn_context', payload: { model } })
  const said = (text: string): object => ({ type: 'response_item', payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] } })
  const asked = (text: string): object => ({ type: 'response_item', payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } })
  const counts = (input: number, cached: number, writes: number, output: number): Counts => ({
    ...{ input_tokens: input, cached_input_tokens: cached, cache_write_input_tokens: writes, output_tokens: output },
    ...{ reasoning_output_tokens: Math.floor(output / 2), total_tokens: input + output },
  })
  const record = (id: string, usage: Counts): object => ({ type: 'token_usage_record', payload: { response_id: id, usage, turn_token_usage: usage } })
  let total = 0
  const event = (usage: Counts): object => {
    total += 1
    return { type: 'event_msg', payload: { type: 'token_count', info: { last_token_usage: usage, total_token_usage: { total_tokens: total } } } }
  }
  const rollout = (...lines: object[]): string =>
    write(
      join(temporaryFolder(), 'rollout.jsonl'),
      lines.map((one, n) => ({ timestamp: new Date(Date.parse('2026-09-01T10:00:00Z') + n * 1000).toISOString(), ...one })),
    )

  const first = counts(100_000, 20_000, 70_000, 1000)
  const second = counts(120_000, 100_000, 15_000, 500)
  const summary = counts(110_000, 90_000, 0, 2000)

  test.each([
    ['a record for each response', (id: string, usage: Counts) => [record(id, usage)]],
    ['a record and then an event', (id: string, usage: Counts) => [record(id, usage), event(usage)]],
    ['an event and then a record', (id: string, usage: Counts) => [event(usage), record(id, usage)]],
    ['each of them twice', (id: string, usage: Counts) => [record(id, usage), event(usage), record(id, usage), event(usage)]],
    ['events alone', (_: string, usage: Counts) => [event(usage)]],
  ])('%s gives the same bill, with the response that wrote a summary', async (_, told) => {
    const file = rollout(
      ...[meta('c'), context('gpt-6.1-sol'), asked('go'), said('one'), ...told('r1', first)],
      ...[
        asked('more'),
        said('two'),
        ...told('r2', second),
        ...told('r3', summary),
        { type: 'compacted', payload: { message: 'All is well', latest_token_usage_record: { response_id: 'r3', usage: summary } } },
      ],
    )
    const { charges } = await charged(file)
    expect(charges.map(({ tokens }) => tokens).toSorted((one, other) => one.output - other.output)).toMatchObject([
      { input: 5000, cacheRead: 100_000, cacheWrite: 15_000, output: 500 },
      { input: 10_000, cacheRead: 20_000, cacheWrite: 70_000, output: 1000 },
      { input: 20_000, cacheRead: 90_000, cacheWrite: 0, output: 2000 },
    ])
    // Fresh 2, read .1, written 2.5, output 10 a million; the output has the reasoning in it.
    const dollars = (35_000 * 2 + 210_000 * 0.1 + 85_000 * 2.5 + 3500 * 10) / 1e6
    expect(charges.reduce((sum, { cost = 0 }) => sum + cost, 0)).toBeCloseTo(dollars, 9)
  })

  test.each([
    ['gpt-5.5', 1, 5, 0.5],
    ['gpt-5.6-sol', 1.25, 4, 0.4],
    ['gpt-6.1-sol', 1.25, 2, 0.1],
  ])('%s: written tokens cost %s, and above 272,000 the whole request costs twice, its output half as much more', async (model, write, input, read) => {
    const cost = async (usage: Counts): Promise<number> =>
      (await charged(rollout(meta('c'), context(model), asked('go'), said('one'), record('r', usage)))).cost
    const below = await cost(counts(272_000, 200_000, 50_000, 0))
    expect(below).toBeCloseTo((22_000 * input + 200_000 * read + 50_000 * write * input) / 1e6, 9)
    const above = await cost(counts(272_001, 200_000, 50_000, 0))
    expect(above).toBeCloseTo((2 * (22_001 * input + 200_000 * read + 50_000 * write * input)) / 1e6, 9)
    const spoken = await cost(counts(272_001, 200_000, 50_000, 1000))
    const spokenBelow = await cost(counts(272_000, 200_000, 50_000, 1000))
    expect((spoken - above) / (spokenBelow - below)).toBeCloseTo(1.5, 6)
  })

  test('a fork repeats nothing, with and without names of responses', async () => {
    for (const told of [record, (_: string, usage: Counts) => event(usage)]) {
      const shared = [asked('go'), said('one'), told('r1', first)]
      const parent = rollout(meta('p'), context('gpt-6.1-sol'), ...shared, asked('more'), said('two'), told('r2', second))
      // A fork is written anew, at another time.
      const fork = rollout(
        meta('f', { forked_from_id: 'p' }),
        { type: 'event_msg', payload: {} },
        context('gpt-6.1-sol'),
        ...shared,
        asked('else'),
        said('three'),
        told('r4', summary),
      )
      const both = await charged(parent, fork)
      expect([both.calls, both.repeated.calls]).toEqual([3, 1])
      const turned = await charged(fork, parent)
      expect([turned.calls, turned.cost]).toEqual([3, expect.closeTo(both.cost, 9)])
    }
  })

  test('a subagent’s rollout is part of the bill; replay leaves it out and says what it cost', async () => {
    const file = rollout(meta('child', { source: { subagent: 'review' } }), context('gpt-6.1-sol'), asked('go'), said('one'), record('r1', first))
    const { cost } = await charged(file)
    expect(cost).toBeGreaterThan(0.2)
    const { stdout, stderr } = await cli(['replay', file, '--json'])
    expect(JSON.parse(stdout).leftOut).toEqual([
      { file, message: expect.stringContaining('subagent of Codex, child'), calls: 1, cost: expect.closeTo(cost, 9) },
    ])
    expect(stderr).toContain(`(1 call, $${cost.toFixed(2)})`)
  })
})

describe('each call counts once', () => {
  const hour = (tokens: number): Counts => written(tokens, { ephemeral_1h_input_tokens: tokens, ephemeral_5m_input_tokens: 0 })
  const side = { isSidechain: true, agentId: 'a1' }

  /**
   * A project with a session, two subagents of it, one of them a repetition of its parent, and a session that was resumed from it.
   */
  function project(): { folder: string; main: string; cost: number } {
    const folder = temporaryFolder()
    const shared = [prompt('go'), answer('m1', hour(1e5)), prompt('more'), answer('m2', hour(2e5))]
    const main = write(join(folder, 'p', 'main.jsonl'), [...shared, answer('inline', hour(1e5), side)])
    write(join(folder, 'p', 'main', 'subagents', 'agent-a1.jsonl'), [prompt('look', side), answer('a1', hour(3e5), side)])
    const asides = shared.map((one) => ({ ...one, ...side, agentId: 'aside' }))
    write(join(folder, 'p', 'main', 'subagents', 'agent-aside_question-1.jsonl'), [...asides, prompt('by the way', side), answer('a2', hour(1e4), side)])
    write(join(folder, 'p', '0-resumed.jsonl'), [...shared.map((one) => ({ ...one, sessionId: '0' })), prompt('on'), answer('m3', hour(5e4), { session: '0' })])
    return { folder, main, cost: 7.1 }
  }

  test('a folder, a file, both, and copies in two projects give each call once', async () => {
    const { folder, main, cost } = project()
    expect((await charged(folder)).cost).toBeCloseTo(cost + 0.5, 9)
    const named = await charged(main)
    expect([named.cost, named.calls]).toEqual([expect.closeTo(cost, 9), 5])
    expect((await charged(folder, main, folder)).cost).toBeCloseTo(cost + 0.5, 9)
    const copy = join(folder, 'q', 'copy.jsonl')
    write(copy, [prompt('go'), answer('m1', hour(1e5)), answer('m2', hour(2e5)), answer('a1', hour(3e5))])
    const all = await charged(folder, copy)
    expect(all.cost).toBeCloseTo(cost + 0.5, 9)
    expect(all.repeated).toEqual({ calls: 7, cost: expect.closeTo(12, 9) })
    // The subagents' calls are part of the session that started them.
    expect(new Set(all.charges.map(({ session }) => session))).toEqual(new Set(['s', '0']))
    const { stderr } = await cli(['usage', folder])
    expect(stderr).toContain('left out: 7 calls that other files have, too ($12.00); each call counts once')
  })

  test('replay also counts them once, and says what it leaves out and its price', async () => {
    const { folder } = project()
    const { stdout, stderr } = await cli(['replay', folder, '--json', '--policies', 'append,pi'])
    const { sessions, summary, leftOut } = JSON.parse(stdout)
    expect(sessions.map(({ calls }: { calls: number }) => calls)).toEqual([3])
    expect(summary.bySource.other.recorded).toBeCloseTo(3.5, 9)
    expect(summary.leftOut).toMatchObject({ repeated: { calls: 0 } })
    expect(leftOut.map(({ message, calls, repeated }: Counts) => [message, calls, repeated])).toEqual([
      ['all of its model calls are in other files, too', 1, { calls: 2, cost: expect.closeTo(3, 9) }],
      [expect.stringContaining('subagent'), 1, undefined],
      [expect.stringContaining('subagent'), 1, undefined],
    ])
    expect(stderr).toContain('left out: 2 calls that other files have, too ($3.00)')
    const unique = await cli(['replay', join(folder, 'p', 'main.jsonl'), '--json', '--policies', 'append,pi'])
    const [session] = JSON.parse(unique.stdout).sessions
    expect(session).toMatchObject({ calls: 2, recordedCost: expect.closeTo(3, 9), side: { calls: 1, cost: expect.closeTo(1, 9) } })
    // A repeated call still fills the cache for those behind it, and costs nothing.
    const resumed = write(join(folder, 'q', 'z.jsonl'), [prompt('go'), answer('m1', hour(1e5)), prompt('new'), answer('m9', hour(1e5))])
    const [one, other] = JSON.parse((await cli(['replay', join(folder, 'p', '0-resumed.jsonl'), resumed, '--json', '--policies', 'append,pi'])).stdout).sessions
    expect([one.calls, other.calls, other.repeated.calls]).toEqual([3, 1, 1])
    expect(other.policies.append.cacheHit).toBeGreaterThan(0)
  })

  test('an answer whose lines stand apart is one call', async () => {
    const file = write(join(temporaryFolder(), 's.jsonl'), [
      prompt('go'),
      answer('m1', hour(1e5)),
      prompt('wait'),
      answer('m1', hour(1e5)),
      answer('m2', hour(1e5)),
    ])
    expect((await charged(file)).calls).toBe(2)
    const { stdout, code } = await cli(['replay', file, '--json'])
    expect([code, JSON.parse(stdout).sessions[0].calls]).toEqual([0, 2])
  })
})

describe('counts that can’t be right', () => {
  const sound = { input_tokens: 1000, output_tokens: 10, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
  test.each([
    ['negative', { ...sound, input_tokens: -5 }],
    ['no number', { ...sound, output_tokens: 'many' }],
    ['too large', { ...sound, cache_read_input_tokens: 1e300 }],
    ['missing', { cache_read_input_tokens: 5 }],
    ['a split larger than what was written', { ...sound, cache_creation_input_tokens: 10, cache_creation: { ephemeral_1h_input_tokens: 100 } }],
    ['a negative split', { ...sound, cache_creation_input_tokens: 10, cache_creation: { ephemeral_1h_input_tokens: -100 } }],
  ])('%s: the report says so and continues', async (_, usage) => {
    const file = write(join(temporaryFolder(), 's.jsonl'), [
      prompt('go'),
      answer('m1', sound, { model: SONNET }),
      prompt('on'),
      answer('m2', usage as Counts, { model: SONNET }),
    ])
    const { charges, calls } = await charged(file)
    expect([calls, charges.map(({ isDoubtful }) => isDoubtful)]).toEqual([2, [undefined, true]])
    for (const { cost, tokens } of charges)
      for (const amount of [cost, ...Object.values(tokens)]) expect(amount).toSatisfy((one: number) => Number.isFinite(one) && one >= 0)
  })

  test('every kind, in the output of the programs', async () => {
    const bad = [{}, null, 'x', { input_tokens: null }, { input_tokens: -1, output_tokens: Number.MAX_VALUE }]
    const file = write(
      join(temporaryFolder(), 's.jsonl'),
      bad.flatMap((usage, n) => [prompt(`${n}`), answer(`m${n}`, usage as Counts)]),
    )
    const told = await cli(['usage', file])
    expect(told.stderr).toContain('1 of 5 calls has token counts that are missing, negative, too large or contradict each other')
    expect(told.stderr).toContain('4 of 5 calls have no bill')
    const replayed = await cli(['replay', file, '--json'])
    expect(replayed.stdout).not.toMatch(/NaN|Infinity/)
    expect(replayed.stderr).toContain('1 of 5 calls has token counts')
    for (const { policies } of JSON.parse(replayed.stdout).sessions)
      for (const { cost } of Object.values(policies) as { cost: number }[]) expect(cost).toBeGreaterThan(0)
  })

  test('calls without a time are no day’s', async () => {
    const file = write(join(temporaryFolder(), 's.jsonl'), [prompt('go', { timestamp: undefined }), { ...answer('m1', sound), timestamp: undefined }])
    const { stdout } = await cli(['usage', file, '--json'])
    expect(JSON.parse(stdout).rows.map(({ key }: { key: string }) => key)).toEqual(['no date'])
  })
})
