import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { openRecording } from '../../lib/recordings/open.ts'
import { callsOf, isCall, textOf } from '../../lib/recordings/recording.ts'
import type { Step } from '../../lib/recordings/recording.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { entriesOf, fixture, stepsOf, temporaryFile } from './support.ts'

afterEach(cleanUp)

const HEADER = '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/home/dev"}'

function user(id: string, parent: string | null, text: string): string {
  const message = { role: 'user', content: [{ type: 'text', text }], timestamp: 1000 }
  return JSON.stringify({ type: 'message', id, parentId: parent, timestamp: '2026-01-01T00:00:01Z', message })
}

function said(step: Step): string {
  return step.kind === 'message' ? textOf(step.entry.message) : step.kind
}

describe('sessions of Pi', () => {
  test.each([
    ['pi-version-1.jsonl', 1, 39],
    ['pi-version-2.jsonl', 2, 42],
    ['pi-version-3.jsonl', 3, 42],
  ])('%s', async (name, version, calls) => {
    const recording = await openRecording(fixture(name))
    expect(recording.origin).toMatchObject({ format: 'pi', version, cwd: '/home/dev/shop' })
    const { steps, problems } = await stepsOf(fixture(name))
    const entries = entriesOf(steps)
    expect(problems).toEqual([])
    expect(entries.filter(({ message }) => isCall(message))).toHaveLength(calls)
    expect(entries.some(({ message }) => message.role === 'bashExecution')).toBe(true)
    const pictures = entries.filter(({ message }) => JSON.stringify(message.content ?? '').includes('"image"'))
    expect(pictures).toHaveLength(1)
    const compactions = steps.filter((step) => step.kind === 'compaction')
    expect(compactions).toHaveLength(1)
    expect(compactions[0]).toMatchObject({ summary: expect.stringContaining('parts without a price') })
    const kept = (compactions[0] as { firstKept: string }).firstKept
    expect(entries.map(({ key }) => key)).toContain(kept)
    expect(steps.filter((step) => step.kind === 'branch')).toHaveLength(version === 1 ? 0 : 1)
  })

  test('a branch names the messages from the root to where the user went back', async () => {
    const { steps } = await stepsOf(fixture('pi-version-3.jsonl'))
    const at = steps.findIndex((step) => step.kind === 'branch')
    const branch = steps[at] as Extract<Step, { kind: 'branch' }>
    const before = entriesOf(steps.slice(0, at))
    const texts = new Map(before.map(({ key, message }) => [key, textOf(message)]))
    expect(texts.get(branch.keys.at(-1) as string)).toBe('The notes are in docs/prices.md.')
    expect(branch.keys.length).toBeLessThan(before.length)
    expect(said(steps[at + 1] as Step)).not.toContain('Move all rules')
  })

  test('a whole read tells the file, a part of one does not', async () => {
    const { steps } = await stepsOf(fixture('pi-version-3.jsonl'))
    const entries = entriesOf(steps)
    const calls = new Map(entries.flatMap(({ message }) => callsOf(message).map((call) => [call.id, call.arguments])))
    const reads = entries.filter(({ message }) => message.toolName === 'read')
    expect(reads.length).toBeGreaterThan(10)
    for (const { message, file } of reads) {
      const args = calls.get(message.toolCallId as string)
      expect(file === undefined, JSON.stringify(args)).toBe(args?.['limit'] !== undefined)
      if (file !== undefined) expect(file).toEqual({ path: args?.['path'], content: textOf(message) })
    }
  })
})

test('a transcript of Claude Code is the same conversation in the words of Pi', async () => {
  const pi = entriesOf((await stepsOf(fixture('pi-version-1.jsonl'))).steps)
  const { steps, problems } = await stepsOf(fixture('claude-code.jsonl'))
  const other = entriesOf(steps)
  expect(problems).toEqual([])
  const shape = (entries: typeof pi) =>
    entries
      .filter(({ message }) => message.role !== 'bashExecution')
      .map(({ message }) => [message.role, textOf(message), callsOf(message).map(({ name, id }) => [name, id])])
  expect(shape(other)).toEqual(shape(pi))
  const edits = (entries: typeof pi) =>
    entries.flatMap(({ message }) =>
      callsOf(message)
        .filter((call) => call.name === 'edit')
        .map((call) => call.arguments),
    )
  expect(edits(other)).toEqual(edits(pi))
  expect(other.filter(({ file }) => file !== undefined && file.path.startsWith('src/')).length).toBeGreaterThan(10)
  expect(steps.filter((step) => step.kind === 'compaction')).toHaveLength(1)
})

describe('a transcript of Claude Code whose user went back', () => {
  const line = (uuid: string, parentUuid: string | null, type: string, message: object) =>
    JSON.stringify({ uuid, parentUuid, type, message, sessionId: 's', cwd: '/x', timestamp: '2026-01-01T00:00:00Z' })
  const answer = (id: string, text: string) => ({ id, role: 'assistant', content: [{ type: 'text', text }] })

  test('continues from there', async () => {
    const lines = [
      line('1', null, 'user', { role: 'user', content: 'one' }),
      line('2', '1', 'assistant', answer('a', 'first')),
      line('3', '2', 'user', { role: 'user', content: 'two' }),
      line('4', '3', 'assistant', answer('b', 'second')),
      line('5', '2', 'user', { role: 'user', content: 'another two' }),
      line('6', '5', 'assistant', answer('c', 'third')),
    ]
    const { steps } = await stepsOf(temporaryFile('s.jsonl', `${lines.join('\n')}\n`))
    expect(steps.map(said)).toEqual(['one', 'first', 'two', 'second', 'branch', 'another two', 'third'])
    expect(steps[4]).toMatchObject({ keys: ['1', 'a'] })
  })

  test('a subagent is left out', async () => {
    const lines = [
      line('1', null, 'user', { role: 'user', content: 'one' }),
      line('2', '1', 'assistant', answer('a', 'first')),
      line('3', '2', 'user', { role: 'user', content: 'hidden' }).replace('{', '{"isSidechain":true,'),
    ]
    const { steps } = await stepsOf(temporaryFile('s.jsonl', `${lines.join('\n')}\n`))
    expect(steps.map(said)).toEqual(['one', 'first'])
  })
})

describe('bad files', () => {
  test('a last line that is cut off is reported, and the rest is read', async () => {
    const text = `${HEADER}\n${user('a', null, 'hello')}\n${user('b', 'a', 'there').slice(0, 40)}`
    const { steps, problems } = await stepsOf(temporaryFile('s.jsonl', text))
    expect(steps.map(said)).toEqual(['hello'])
    expect(problems).toMatchObject([{ line: 3, message: expect.stringContaining('cut off'), fatal: false }])
  })

  test('a line in the middle that is not JSON is left out', async () => {
    const text = `${HEADER}\n${user('a', null, 'hello')}\nnonsense\n[1]\n${user('b', 'a', 'there')}\n`
    const { steps, problems } = await stepsOf(temporaryFile('s.jsonl', text))
    expect(steps.map(said)).toEqual(['hello', 'there'])
    expect(problems.map(({ line }) => line)).toEqual([3, 4])
  })

  test('a second session in the file is not part of the first', async () => {
    const text = `${HEADER}\n${user('a', null, 'hello')}\n${HEADER}\n${user('b', null, 'there')}\n`
    const { steps, problems } = await stepsOf(temporaryFile('s.jsonl', text))
    expect(steps.map(said)).toEqual(['hello'])
    expect(problems).toMatchObject([{ line: 3, message: expect.stringContaining('second session') }])
  })

  test.each([
    ['{"some":"json"}\n', 'neither'],
    ['', 'no JSON lines'],
    ['plain text\n', 'no JSON lines'],
    [HEADER.replace('"version":3', '"version":4'), 'version 4'],
    [HEADER.replace('"version":3', '"version":0'), 'version 0'],
  ])('%j is refused', async (text, reason) => {
    await expect(openRecording(temporaryFile('s.jsonl', text))).rejects.toThrow(reason)
  })

  test('a tree whose parents are missing or go in a circle ends', async () => {
    const text = [HEADER, user('a', 'nowhere', 'one'), user('b', 'c', 'two'), user('c', 'b', 'three'), user('d', 'b', 'four')]
    const { steps } = await stepsOf(temporaryFile('s.jsonl', `${text.join('\n')}\n`))
    expect(steps.filter((step) => step.kind === 'message')).toHaveLength(4)
  })
})

test('the recordings name no person’s machine', () => {
  for (const name of ['pi-version-1.jsonl', 'pi-version-2.jsonl', 'pi-version-3.jsonl', 'claude-code.jsonl']) {
    expect(readFileSync(fixture(name), 'utf8')).not.toMatch(/\/(tmp|root|work|Users)\//)
  }
})
