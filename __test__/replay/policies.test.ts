import { afterEach, describe, expect, test } from 'vitest'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { noUses } from '../../lib/replay/missed/uses.ts'
import { openRecording } from '../../lib/recordings/open.ts'
import { Managed } from '../../lib/replay/policies/managed.ts'
import { BlockCache } from '../../lib/replay/policies/block-cache.ts'
import { Append, Clear, Mask, Pi } from '../../lib/replay/policies/conversation.ts'
import type { Setting } from '../../lib/replay/policies/policy.ts'
import { ratioPrices } from '../../lib/recordings/prices.ts'
import { textOf } from '../../lib/recordings/recording.ts'
import type { RecordedEntry } from '../../lib/recordings/recording.ts'
import { replaySession } from '../../lib/replay/run.ts'
import { survey } from '../../lib/replay/survey.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { SOON } from '../../rig/extension.ts'
import { fixture, MOMENT, options, setting as settingOf } from './support.ts'

afterEach(cleanUp)

const setting = (changes: Partial<Setting> = {}) => settingOf({ manager: { ...options().manager, open: { stay: SOON } }, ...changes })

/** Turns of one call each: a question, an answer that reads, the result of `characters` characters. */
function turns(count: number, characters: number): RecordedEntry[] {
  return Array.from({ length: count }, (_, n): RecordedEntry[] => {
    const call = { type: 'toolCall', id: `c${n}`, name: 'bash', arguments: { command: `echo ${n}` } }
    return [
      { key: `u${n}`, at: n, message: { role: 'user', content: `do ${n}` } },
      { key: `a${n}`, at: n, message: { role: 'assistant', content: [call], stopReason: 'toolUse' } },
      {
        key: `r${n}`,
        at: n,
        message: {
          role: 'toolResult',
          toolCallId: `c${n}`,
          toolName: 'bash',
          content: [{ type: 'text', text: `${n} `.repeat(characters).slice(0, characters) }],
        },
      },
    ]
  }).flat()
}

function shown(blocks: readonly ReplayBlock[], key: string): ReplayBlock {
  const found = blocks.find((block) => block.key === key)
  if (found === undefined) throw new Error(`${key} is not in the request`)
  return found
}

test('mask shows the last ten results', () => {
  const mask = new Mask(setting(), new BlockCache())
  for (const entry of turns(14, 500)) mask.add(entry)
  const { blocks } = mask.request(MOMENT)
  expect(shown(blocks, 'r3').texts).toEqual(['[Previous output omitted]'])
  expect(shown(blocks, 'r4').units).toBe(500)
})

test('clear takes nothing below 100,000 tokens, then all but three results, for good', () => {
  const clear = new Clear(setting(), new BlockCache())
  const all = turns(30, 20_000)
  for (const entry of all.slice(0, 57)) clear.add(entry)
  expect(shown(clear.request(MOMENT).blocks, 'r0').units).toBe(20_000)
  for (const entry of all.slice(57, 75)) clear.add(entry)
  const { blocks } = clear.request(MOMENT)
  expect(shown(blocks, 'r21').texts).toEqual(['[Old tool result content cleared]'])
  expect(shown(blocks, 'r22').units).toBe(20_000)
  expect(shown(clear.request(MOMENT).blocks, 'r21').units).toBeLessThan(100)
})

test('pi compacts 16,384 tokens below the window, keeps about 20,000, and pays for the summary', () => {
  const pi = new Pi(setting({ window: 60_000 }), new BlockCache())
  let compacted = 0
  for (const entry of turns(40, 8000)) {
    pi.add(entry)
    if (entry.message.role !== 'toolResult') continue
    const { blocks, compaction } = pi.request(MOMENT)
    const tokens = blocks.reduce((sum, block) => sum + block.units, 0) / 4
    expect(tokens).toBeLessThanOrEqual(60_000 - 16_384)
    if (compaction === undefined) continue
    compacted += 1
    expect(tokens).toBeGreaterThan(20_000)
    expect(tokens).toBeLessThan(28_000)
    expect(compaction.outputTokens).toBe(1000)
    expect(blocks[1]?.label).toBe('summary')
    expect(blocks[2]?.label).not.toBe('bash')
  }
  // 80,000 tokens in all; the first falls due at 43,616, each further one 21,000 to 24,000 later.
  expect(compacted).toBe(2)
})

test('pi keeps its compaction on the branch that it was made on, and only there', () => {
  const pi = new Pi(setting({ window: 60_000 }), new BlockCache())
  const all = turns(20, 16_000)
  const compactions: number[] = []
  for (const [index, entry] of all.entries()) {
    pi.add(entry)
    if (entry.message.role === 'toolResult' && pi.request(MOMENT).compaction !== undefined) compactions.push(index)
  }
  const first = compactions[0] as number
  expect(compactions.length).toBeGreaterThan(1)
  const after = all.slice(0, first + 4)
  pi.branch(after)
  const request = pi.request(MOMENT)
  expect(request.compaction).toBeUndefined()
  expect(request.blocks[1]?.label).toBe('summary')
  expect(request.blocks.map((block) => block.key)).not.toContain('u0')
  expect(request.blocks.at(-1)?.key).toBe(after.at(-1)?.key)
  pi.branch(all.slice(0, first - 4))
  const before = pi.request(MOMENT)
  expect(before.blocks.map((block) => block.key).slice(0, 2)).toEqual([undefined, 'u0'])
})

test('a branch takes back the messages after it', () => {
  const append = new Append(setting(), new BlockCache())
  const entries = turns(3, 100)
  for (const entry of entries) append.add(entry)
  append.branch(entries.slice(0, 3))
  expect(append.request(MOMENT).blocks.map((block) => block.key)).toEqual([undefined, 'u0', 'a0', 'r0'])
})

describe('pi-context-manager', () => {
  test('between rolls each request is the last one and something after it', async () => {
    const policy = await Managed.open(setting({ unitsPerToken: 3 }), new BlockCache())
    let last: string[] = []
    let rolls = 0
    try {
      for (const entry of turns(60, 3000)) {
        if (entry.message.role === 'assistant') {
          const request = await policy.request({ ...MOMENT, at: entry.at * 1000 })
          const bytes = request.blocks.map((block) => block.bytes)
          if ((request.rolls ?? []).length === 0) expect(bytes.slice(0, last.length)).toEqual(last)
          rolls += request.rolls?.length ?? 0
          last = bytes
        }
        await policy.add(entry, undefined)
      }
    } finally {
      await policy.close()
    }
    expect(rolls).toBeGreaterThan(0)
  })

  test('the tools count from a roll on, once they cost little beside the rest', async () => {
    const policy = await Managed.open(setting({ unitsPerToken: 3 }), new BlockCache())
    const systems: number[] = []
    let firstRoll: number | undefined
    try {
      for (const entry of turns(320, 3000)) {
        if (entry.message.role === 'assistant') {
          // A pause after which the whole prompt must be written anew.
          const at = entry.at * 1000 + (entry.at < 310 ? 0 : 600_000)
          const { blocks, rolls } = await policy.request({ ...MOMENT, at })
          systems.push(blocks[0]?.units as number)
          if (firstRoll === undefined && (rolls?.length ?? 0) > 0) firstRoll = systems.length - 1
        }
        await policy.add(entry, undefined)
      }
    } finally {
      await policy.close()
    }
    const came = systems.indexOf(1600 * 3)
    expect(new Set(systems.slice(0, came))).toEqual(new Set([1000 * 3]))
    expect(new Set(systems.slice(came))).toEqual(new Set([1600 * 3]))
    expect(firstRoll).toBeGreaterThan(0)
    expect(came).toBeGreaterThan(firstRoll as number)
    expect(came).toBeLessThanOrEqual(310)
  })

  test('a compaction holds after a step back behind it', async () => {
    const policy = await Managed.open(setting({ unitsPerToken: 1, window: 40_000 }), new BlockCache())
    const all = turns(24, 1500).map((entry) => (entry.message.role === 'user' ? { ...entry, message: { role: 'user', content: 'y'.repeat(3000) } } : entry))
    const compactions: number[] = []
    try {
      for (const [index, entry] of all.entries()) {
        if (entry.message.role === 'assistant' && (await policy.request(MOMENT)).compaction !== undefined) compactions.push(index)
        await policy.add(entry, undefined)
      }
      const at = compactions.at(-1) as number
      await policy.branch(all.slice(0, at + 5))
      const { blocks, compaction } = await policy.request(MOMENT)
      expect(compaction).toBeUndefined()
      expect(blocks[1]?.label).toBe('summary')
      await policy.branch(all.slice(0, (compactions[0] as number) - 3))
      expect((await policy.request(MOMENT)).blocks[1]?.key).toBe('u0')
    } finally {
      await policy.close()
    }
  })

  test('each result is shown whole under its header, or as its reference', async () => {
    const policy = await Managed.open(setting({ unitsPerToken: 3 }), new BlockCache())
    const entries = turns(60, 3000)
    const texts = new Map(entries.map(({ key, message }) => [key, textOf(message)]))
    let references = 0
    try {
      for (const entry of entries) await policy.add(entry, undefined)
      const { blocks } = await policy.request(MOMENT)
      for (const block of blocks.filter(({ label }) => label === 'bash')) {
        const [first, ...rest] = (block.texts[0] as string).split('\n')
        if (first?.startsWith('toolcall_ref ') === true) {
          // Lines of calls that have left stand behind the reference.
          references += 1 + rest.length
          for (const line of rest) expect(line).toMatch(/^said: | id=[0-9a-f]+$/)
        } else {
          expect(first).toMatch(/^id=/)
          const whole = texts.get(block.key as string) as string
          expect(rest.join('\n')).toBe(whole)
        }
      }
    } finally {
      await policy.close()
    }
    expect(references).toBeGreaterThan(20)
  })
})

describe('side by side', () => {
  test.each(['pi-version-1.jsonl', 'pi-version-2.jsonl', 'pi-version-3.jsonl', 'claude-code.jsonl'])('%s', async (name) => {
    const recording = await openRecording(fixture(name))
    const found = await survey(recording, () => {})
    const done: number[] = []
    const report = await replaySession(recording, found, options({ prices: ratioPrices(0.1, 1.25) }), (calls) => done.push(calls))
    expect(done.at(-1)).toBe(report.calls)
    const { append, pi, sections, 'pi-context-manager': own, bound } = report.policies
    expect(pi).toEqual(append)
    expect(pi?.missedUses).toEqual(noUses())
    expect(own?.costVsPi).toBeLessThan(0.97)
    expect(sections?.costVsPi).toBeGreaterThan(2)
    expect(bound?.cost).toBeLessThan(own?.cost as number)
    for (const { missedUses, ...figures } of Object.values(report.policies)) {
      if (missedUses === undefined) expect(figures).toEqual(bound)
      else expect(Object.values(figures).every(Number.isFinite), JSON.stringify(figures)).toBe(true)
      expect(figures.cacheHit).toBeLessThan(1)
    }
    for (const series of Object.values(report.details.series)) {
      expect(series.tokens).toHaveLength(report.calls)
      expect(series.cost).toHaveLength(report.calls)
      expect(series.cost).toEqual([...series.cost].sort((a, b) => a - b))
    }
    // The tokens of plain append equal the recorded program's bill, where nothing was compacted or left behind.
    if (name === 'pi-version-1.jsonl') expect(append?.tokensSent).toBeGreaterThan(report.recordedTokens * 0.9)
  })

  test('the same recording gives the same figures', async () => {
    const run = async () => {
      const recording = await openRecording(fixture('pi-version-3.jsonl'))
      return replaySession(recording, await survey(recording, () => {}), options({ policies: ['pi', 'pi-context-manager'] }))
    }
    expect(await run()).toEqual(await run())
  })
})
