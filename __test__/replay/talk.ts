/** Hand-made conversations, and the uses of what a policy hides of them. */
import { expect } from 'vitest'
import { blocksOf, Calls, textBlock } from '../../lib/recordings/blocks.ts'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { Reader } from '../../lib/replay/missed/answer.ts'
import { Meter } from '../../lib/replay/missed/meter.ts'
import type { OwnPhrases } from '../../lib/replay/missed/phrases.ts'
import type { MissedUses } from '../../lib/replay/missed/uses.ts'
import { Vocabulary } from '../../lib/replay/missed/vocabulary.ts'
import { ratioPrices } from '../../lib/recordings/prices.ts'
import { isCall, isSent } from '../../lib/recordings/recording.ts'
import type { RecordedEntry, Message, Step } from '../../lib/recordings/recording.ts'
import { entriesOf } from './support.ts'

/** The agent's working directory. */
export const CWD = '/home/dev/shop'

/** One thing that happens in a hand-made conversation. */
export type Line =
  | { user: string }
  | { thinks?: string; says?: string; calls?: [name: string, args: Record<string, unknown>, output: string] }
  | { compacts: string }

export const RUN = 'the price of every part is rounded up'
export const RUNS = `${RUN}; a cart without any part has no price; discounts are never larger than the whole price`

/** The messages that a conversation has. */
export function* stepsFrom(lines: readonly Line[]): Generator<Step> {
  for (const [n, line] of lines.entries()) {
    const entry = (key: string, message: Message): Step => ({ kind: 'message', entry: { key, at: n, message } })
    if ('user' in line) yield entry(`u${n}`, { role: 'user', content: line.user })
    else if ('compacts' in line) yield { kind: 'compaction', summary: line.compacts, firstKept: undefined, at: n }
    else {
      const { thinks, says, calls } = line
      const content = [
        ...(thinks === undefined ? [] : [{ type: 'thinking', thinking: thinks }]),
        ...(says === undefined ? [] : [{ type: 'text', text: says }]),
        ...(calls === undefined ? [] : [{ type: 'toolCall', id: `c${n}`, name: calls[0], arguments: calls[1] }]),
      ]
      yield entry(`a${n}`, { role: 'assistant', content })
      if (calls === undefined) continue
      const output = [{ type: 'text', text: calls[2] }]
      yield entry(`r${n}`, { role: 'toolResult', toolCallId: `c${n}`, toolName: calls[0], content: output })
    }
  }
}

/** A policy's choice: true if a block of a message is shown at a call. */
export type Hides = (key: string, block: ReplayBlock, call: number) => boolean

export const outputs: Hides = (key) => key.startsWith('r')

/** Missed uses of a policy that hides some blocks. Those that are told one by one must be the strong ones that are counted. */
export function missed(steps: Iterable<Step>, hides: Hides, phrases?: OwnPhrases): MissedUses {
  const all = [...steps]
  const vocabulary = new Vocabulary()
  const reader = new Reader(vocabulary, CWD)
  for (const { message } of entriesOf(all)) if (isCall(message)) reader.learn(message)
  const calls = new Calls()
  const told: boolean[] = []
  const onMissed = (_: string, answer: object, harms: boolean): void => {
    expect(answered).toContain(answer)
    told.push(harms)
  }
  const answered: object[] = []
  const meter = new Meter({ cwd: CWD, unitsPerToken: 3, vocabulary, phrases, onMissed, calls })
  let shown: { entry: RecordedEntry; blocks: ReplayBlock[] }[] = []
  let call = 0
  for (const step of all) {
    if (step.kind === 'compaction') meter.compaction(step.firstKept, textBlock(step.summary, 'summary'))
    else if (step.kind === 'branch') {
      const keys = new Set(step.keys)
      shown = shown.filter(({ entry }) => keys.has(entry.key))
      const { compaction } = step
      meter.branch(step, compaction === undefined ? undefined : textBlock(compaction.summary, 'summary'))
    } else if (step.kind === 'message') {
      const { entry } = step
      const { message } = entry
      calls.add(message)
      if (isCall(message)) {
        const blocks = shown.flatMap((one) => one.blocks.filter((block) => !hides(one.entry.key, block, call)))
        answered.push(message)
        meter.answer(message, [{ name: 'pi-context-manager', blocks, prices: ratioPrices(0.1, 1.25) }])
        call += 1
      }
      const blocks = isSent(message) ? blocksOf(entry, calls) : []
      meter.message(entry, blocks)
      shown.push({ entry, blocks })
    }
  }
  const { uses } = meter.missed('pi-context-manager')
  expect([told.length, told.filter(Boolean).length]).toEqual([uses.toolText.strong, uses.probableHarm])
  return uses
}

export const read = (output: string): Line => ({ calls: ['read', { path: 'a' }, output] })
