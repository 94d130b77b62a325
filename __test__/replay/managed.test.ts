/** Sessions that ran with the context manager: told apart, with what was paid and what plain Pi would have cost. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { openRecording } from '../../lib/recordings/open.ts'
import { ratioPrices } from '../../lib/recordings/prices.ts'
import type { Step } from '../../lib/recordings/recording.ts'
import { replaySession } from '../../lib/replay/run.ts'
import type { SessionReport } from '../../lib/replay/run.ts'
import { ReplaySums } from '../../lib/replay/summary.ts'
import { survey } from '../../lib/replay/survey.ts'
import { verdictOf } from '../../lib/replay/verdict.ts'
import { SOON, withExtension } from '../../rig/extension.ts'
import { total, USUAL_PRICES } from '../../rig/meter.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, newestSession, runPrint } from '../../rig/pi.ts'
import { options, stepsOf, temporaryFile, temporaryFolder } from './support.ts'

afterEach(cleanUp)

const TURNS = 12

/** Model calls of a turn; the last one is the answer. */
const CALLS = 4

/** A session of the real Pi with three large outputs in each turn, and the cost of its requests. */
async function recorded(load: { extension?: string; env?: Record<string, string> }): Promise<{ file: string; cost: number }> {
  const server = await startModelServer((_, n) => {
    const command = `seq ${1 + n * 4000} ${1200 + n * 4000}`
    return n % CALLS === CALLS - 1 ? `turn ${n} is done` : { calls: [{ name: 'bash', args: { command } }] }
  })
  const home = createPiHome({ server })
  const prompts = Array.from({ length: TURNS }, (_, turn) => `look at part ${turn}`)
  const { exitCode, stderr } = await runPrint({ home, prompts, ...load })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const file = newestSession(home.sessionsDir) ?? ''
  return { file, cost: total(server.requests, USUAL_PRICES).cost }
}

async function replayed(file: string): Promise<SessionReport> {
  const recording = await openRecording(file)
  const prices = ratioPrices(USUAL_PRICES.read, USUAL_PRICES.write)
  return replaySession(recording, await survey(recording, () => {}), options({ policies: ['pi', 'pi-context-manager'], prices }))
}

describe('a session of the real Pi', () => {
  test('with the context manager has the paid price, and that of plain Pi', async () => {
    const managed = await recorded(withExtension(join(temporaryFolder(), 'context.db'), SOON))
    const plain = await recorded({})
    expect(managed.cost).toBeLessThan(0.85 * plain.cost)
    const [report, other] = [await replayed(managed.file), await replayed(plain.file)]
    expect([report.isManaged, other.isManaged]).toEqual([true, false])
    expect(other.recordedSaved).toBeUndefined()
    expect(report.recordedCost).toBeCloseTo(managed.cost, 0)
    expect(other.recordedCost).toBeCloseTo(plain.cost, 0)
    const claimed = (report.recordedCost ?? 0) + (report.recordedSaved ?? 0)
    expect(Math.abs(claimed / plain.cost - 1)).toBeLessThan(0.04)
    const sums = new ReplaySums()
    sums.add(report)
    expect(verdictOf(sums.summary())?.cost).toMatch(
      /^Saved \S+ fresh input tokens \(\d+ %\): paid \S+ fresh input tokens, without pi-context-manager \S+ fresh input tokens, for one session with .* by its own account\./,
    )
    sums.add(other)
    expect(verdictOf(sums.summary())?.cost).toMatch(/ You would have paid \S+ fresh input tokens instead of \S+ \(\d+ % less\)/)
  }, 120_000)
})

describe('a session file about the context manager', () => {
  const usage = { input: 100, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 101 }
  const lines = (entries: object[]): string =>
    [{ type: 'session', version: 3, id: 's', timestamp: '2026-01-31T12:00:00.000Z', cwd: '/w' }, ...entries]
      .map((entry) => JSON.stringify({ timestamp: '2026-01-31T12:00:00.000Z', ...entry }))
      .join('\n')
  const entries = [
    { type: 'message', id: 'u', parentId: null, message: { role: 'user', content: 'go' } },
    {
      type: 'message',
      id: 'a',
      parentId: 'u',
      message: { role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'bash', arguments: {} }], usage, stopReason: 'toolUse' },
    },
    {
      type: 'message',
      id: 'r',
      parentId: 'a',
      message: { role: 'toolResult', toolCallId: 'c', toolName: 'bash', content: [{ type: 'text', text: `id=0123abcd\n${'x'.repeat(400)}` }] },
    },
    { type: 'context_edit', id: 'e', parentId: 'r', targetId: 'r', replacement: { content: 'gone' } },
    { type: 'custom', id: 'p', parentId: 'e', customType: 'pi-context-manager', data: { session: 's', tx: 1, saved: 70 } },
    { type: 'message', id: 'b', parentId: 'p', message: { role: 'assistant', content: [{ type: 'text', text: 'done' }], usage, stopReason: 'stop' } },
    { type: 'custom', id: 'q', parentId: 'b', customType: 'pi-context-manager', data: { session: 's', tx: 2, saved: 90 } },
    { type: 'message', id: 'v', parentId: 'r', message: { role: 'user', content: 'again' } },
    { type: 'message', id: 'd', parentId: 'v', message: { role: 'assistant', content: [{ type: 'text', text: 'done' }], usage, stopReason: 'stop' } },
    { type: 'custom', id: 't', parentId: 'd', customType: 'pi-context-manager', data: { session: 's', tx: 3, saved: 5 } },
  ]

  test('edits and points are steps of their branch, and results have no header', async () => {
    const { steps, problems } = await stepsOf(temporaryFile('managed.jsonl', lines(entries)))
    expect(problems).toEqual([])
    const brief = steps.map((step: Step) => (step.kind === 'message' ? step.entry.key : step.kind === 'managed' ? step.saved.tokens : step.kind))
    expect(brief).toEqual(['u', 'a', 'r', 'edit', 70, 'b', 90, 'branch', 'v', 'd', 5])
    expect(steps[7]).toMatchObject({ kind: 'branch', keys: ['u', 'a', 'r'] })
    expect(steps[7]).not.toHaveProperty('edits')
    expect(JSON.stringify(steps[2])).not.toContain('0123abcd')
  })

  test('the saving on each branch counts once', async () => {
    const report = await replayed(temporaryFile('managed.jsonl', lines(entries)))
    expect(report).toMatchObject({ isManaged: true, recordedSaved: 95 })
    expect(report.recordedCost).toBeCloseTo(375)
  })

  test('a managed session without counts of the provider says so', async () => {
    const silent = entries.map((entry) => ('message' in entry ? { ...entry, message: { ...entry.message, usage: undefined } } : entry))
    const report = await replayed(temporaryFile('managed.jsonl', lines(silent)))
    expect(report.recordedCost).toBeUndefined()
    const sums = new ReplaySums()
    sums.add(report)
    expect(verdictOf(sums.summary())?.cost).toContain('What they did cost is not recorded.')
  })

  test('sessions of other agents stand beside their own bill', async () => {
    const file = new URL('../../fixtures/sessions/claude-code.jsonl', import.meta.url).pathname
    expect(readFileSync(file, 'utf8')).toContain('"usage"')
    const sums = new ReplaySums()
    sums.add(await replayed(file))
    expect(verdictOf(sums.summary())?.cost).toMatch(
      /^In Pi, one session of Claude Code with \d+ answers on \S+ would have cost \S+ fresh input tokens with pi-context-manager and \S+ without it \(\d+ % (?:less|more)\)\. In Claude Code they cost \S+ fresh input tokens\.$/,
    )
  })
})
