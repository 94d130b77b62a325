/** A session of Claude Code whose course and bill are known, written as its transcript. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openRecording } from '../../lib/recordings/open.ts'
import type { RecordUse } from '../../lib/replay/record.ts'
import type { SessionReport } from '../../lib/replay/report.ts'
import { replaySession } from '../../lib/replay/run.ts'
import { survey } from '../../lib/replay/survey.ts'
import { options, temporaryFolder } from './support.ts'

/** All of the record counts. */
export const ALL: RecordUse = { cache: true, lifetime: true, window: true, losses: true }
export const MINUTE = 60_000
/** Tokens of the system prompt and the tools. */
export const SYSTEM = 30_000

/** The course of a session. */
export interface Course {
  calls?: number
  /** Minutes before a call; 0.2 for the others. */
  pauses?: Record<number, number>
  /** Calls before which the provider lost the conversation. */
  losses?: readonly number[]
  /** Calls before which the program summarized. */
  summaries?: readonly number[]
  /** Tokens of what the program sends again beside a summary. */
  attached?: number
  /** Calls before which the program cleared all outputs but the newest five, without a word. */
  clearings?: readonly number[]
  lifetime?: 'hour' | 'five minutes' | 'mixed' | 'split'
  /** Characters of an output; a number for each call. */
  output?: (call: number) => number
  /** Tokens of each answer that the transcript does not show. */
  hidden?: number
  /** The system part stands in the cache of another session. */
  isWarm?: boolean
  model?: string
  hasCounts?: boolean
}

let transcripts = 0

/**
 * Writes a transcript of Claude Code, with the counts of a provider that takes three characters for a token. `mixed` is what the same
 * requests would have cost with the system part on an hour and the rest on five minutes.
 */
export function transcript(course: Course): { file: string; bill: number; mixed: number } {
  const { calls = 40, pauses = {}, losses = [], summaries = [], lifetime = 'hour', output = (n) => 2000 + 700 * (n % 7), hidden = 0 } = course
  const { attached = 0, clearings = [] } = course
  const { isWarm = false, model = 'claude-opus-4-5', hasCounts = true } = course
  transcripts += 1
  const name = `course-${transcripts}`
  const lines: object[] = []
  let [at, tokens, cached, bill, parent] = [Date.parse('2026-07-01T08:00:00Z'), SYSTEM, isWarm ? SYSTEM : 0, 0, null as string | null]
  const results: number[] = []
  let [mixed, mixedCached] = [0, cached]
  const push = (type: string, message: object, more: object = {}): void => {
    const uuid = `l${lines.length}`
    lines.push({
      uuid,
      parentUuid: parent,
      type,
      timestamp: new Date(at).toISOString(),
      sessionId: name,
      cwd: '/w/shop',
      message: { role: type, ...message },
      ...more,
    })
    parent = uuid
  }
  const say = (text: string, more: object = {}): void => {
    push('user', { content: text }, more)
    tokens += text.length / 3
  }
  say('Please look at the shop and say what is wrong with it, file by file.')
  for (let n = 0; n < calls; n += 1) {
    at += (pauses[n] ?? 0.2) * MINUTE
    if (pauses[n] !== undefined) say(`Go on with part ${n}, and mind what was said before.`)
    if (summaries.includes(n)) {
      const summary = `The shop is fine up to part ${n}. `.repeat(20)
      tokens = SYSTEM
      cached = Math.min(cached, SYSTEM)
      say(summary, { isCompactSummary: true })
      say('Continue.')
      tokens += attached
      results.length = 0
    }
    const life = lifetime === 'mixed' ? (n % 2 === 0 ? 'hour' : 'five minutes') : lifetime
    if ((pauses[n] ?? 0) > (life === 'hour' ? 60 : 5)) cached = 0
    if (losses.includes(n)) cached = Math.min(cached, SYSTEM)
    if ((pauses[n] ?? 0) > 5 || losses.includes(n) || summaries.includes(n)) mixedCached = Math.min(mixedCached, (pauses[n] ?? 0) > 60 ? 0 : SYSTEM)
    if (clearings.includes(n)) {
      for (let at = 0; at < results.length - 5; at += 1) {
        tokens -= Math.max(0, results[at]! - 36 / 3)
        results[at] = Math.min(results[at]!, 36 / 3)
      }
      cached = Math.min(cached, SYSTEM + 60)
    }
    const prompt = Math.round(tokens)
    const read = Math.round(Math.min(cached, prompt))
    const written = prompt - read
    const hour = life === 'hour' ? written : life === 'split' ? Math.round(written / 3) : 0
    // Input 5, read .5, written 6.25 and 10 a million.
    bill += (read * 0.5 + hour * 10 + (written - hour) * 6.25) / 1e6
    const mixedRead = Math.round(Math.min(mixedCached, prompt))
    const mixedHour = Math.max(0, SYSTEM - mixedRead)
    mixed += (mixedRead * 0.5 + mixedHour * 10 + (prompt - mixedRead - mixedHour) * 6.25) / 1e6
    cached = prompt
    mixedCached = prompt
    const usage = {
      ...{ input_tokens: 0, output_tokens: 90, cache_read_input_tokens: read, cache_creation_input_tokens: written },
      cache_creation: { ephemeral_1h_input_tokens: hour, ephemeral_5m_input_tokens: written - hour },
    }
    const text = `Looking at part ${n} of the shop now.`
    const call = { type: 'tool_use', id: `t${n}`, name: 'Bash', input: { command: `cat part${n}.txt` } }
    push('assistant', { id: `${name}-${n}`, model, content: [{ type: 'text', text }, call], ...(hasCounts && { usage }) })
    const result = `row ${n} of part, `.repeat(Math.ceil(output(n) / 15)).slice(0, output(n))
    push('user', { content: [{ type: 'tool_result', tool_use_id: `t${n}`, content: result }] })
    results.push(result.length / 3)
    tokens += (text.length + 'bash{"command":"cat part.txt"}'.length + result.length) / 3 + hidden
  }
  const file = join(temporaryFolder(), 'course.jsonl')
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return { file, bill, mixed }
}

/** The report on a file, replayed by these parts of its record. */
export async function replayed(file: string, use: RecordUse | undefined = ALL, changes: Parameters<typeof options>[0] = {}): Promise<SessionReport> {
  const recording = await openRecording(file)
  const found = await survey(recording, () => {})
  const record = use === undefined ? {} : { record: use }
  return replaySession(recording, found, options({ policies: ['recorded', 'append', 'pi', 'pi-context-manager'], onlyCosts: true, ...record, ...changes }))
}
