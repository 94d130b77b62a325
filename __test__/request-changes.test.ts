/** The parts that the model gets instead of those that the agent wrote: each part is in one of five groups, and the sizes add up. */
import { expect, test } from 'vitest'
import { changeLines, requestChanges } from '../lib/ui/request-changes.ts'
import type { ComparedMessage } from '../lib/ui/request-changes.ts'
import { randomNumbers } from '../lib/core/random.ts'

const long = (word: string): string => `${word} `.repeat(400)
const call = (id: string, command = `cat ${id}`): object => ({ type: 'toolCall', id, name: 'bash', arguments: { command } })
const result = (id: string, text: string): ComparedMessage => ({ role: 'toolResult', toolCallId: id, toolName: 'bash', content: [{ type: 'text', text }] })
const says = (...content: object[]): ComparedMessage => ({ role: 'assistant', content })
const text = (words: string): object => ({ type: 'text', text: words })
const thinks = (thinking: string): object => ({ type: 'thinking', thinking })
const asks = (content: string): ComparedMessage => ({ role: 'user', content })

const OWN = [
  asks('why does it fail?'),
  says(thinks('hm'), text(long('because')), call('a')),
  result('a', long('old')),
  says(call('b')),
  result('b', long('new')),
]

test.each<[what: string, sent: ComparedMessage[], changes: string[]]>([
  ['nothing', OWN, []],
  ['an output by its reference', OWN.with(2, result('a', 'toolcall_ref id=1 tool=bash status=ok -> exit 0')), ['replaced output of bash cat a']],
  ['an output by its beginning', OWN.with(4, result('b', long('new').slice(0, 300))), ['shortened output of bash cat b']],
  ['an output by a longer text', OWN.with(4, result('b', `${long('new')}!`)), ['replaced output of bash cat b']],
  ['prose by its beginning', OWN.with(1, says(thinks('hm'), text(`${long('because').slice(0, 60)} [...]`), call('a'))), ['shortened answer']],
  ['arguments', OWN.with(1, says(thinks('hm'), text(long('because')), call('a', 'c'))), ['shortened call of bash cat a']],
  ['reasoning that left', OWN.with(1, says(text(long('because')), call('a'))), ['removed reasoning']],
  [
    'a call and its output by one line',
    [OWN[0] as ComparedMessage, says(thinks('hm'), text(long('because')), text('bash cat a -> exit 0')), ...OWN.slice(3)],
    ['removed call and output of bash cat a', 'added answer'],
  ],
  ['a notice at the end', [...OWN, { role: 'custom', content: 'stale id=1 changed' }], ['added message']],
  ['a notice in the middle', [...OWN.slice(0, 3), { role: 'custom', content: 'stale id=1 changed' }, ...OWN.slice(3)], ['added message']],
  [
    'everything before a summary',
    [{ role: 'compactionSummary', summary: 'they talked' }, ...OWN.slice(3)],
    ['removed prompt', 'removed reasoning', 'removed answer', 'removed call and output of bash cat a', 'added message'],
  ],
])('replacing %s', (_what, sent, wanted) => {
  const { changes, own, sent: size } = requestChanges(OWN, sent)
  expect(changes.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([...wanted].sort())
  expect(own - size).toBeCloseTo(
    changes.reduce((sum, { before, after }) => sum + before - after, 0),
    6,
  )
  for (const { reason, kind, text: shown } of changes) expect([reason === '', shown === '']).toEqual([false, kind === 'removed'])
})

test('whatever is replaced, removed and added, every part counts once and the sizes add up', () => {
  const random = randomNumbers(7)
  for (let round = 0; round < 200; round += 1) {
    const own = Array.from({ length: 30 }, (_, at) =>
      random() < 0.5 ? result(`r${at % 20}`, long(`o${at}`)) : random() < 0.5 ? says(text(long(`t${at % 5}`)), call(`c${at}`)) : asks(`p${at % 3}`),
    )
    const sent = own.flatMap((message, at) =>
      random() < 0.2 ? [] : random() < 0.2 ? [{ ...message, content: 'x'.repeat(at) }] : random() < 0.1 ? [asks('new'), message] : [message],
    )
    const { changes, unchanged, own: before, sent: after } = requestChanges(own, sent)
    const parts = own.reduce((sum, { role }) => sum + (role === 'assistant' ? 2 : 1), 0)
    expect(unchanged + changes.filter(({ kind }) => kind !== 'added').length).toBe(parts)
    expect(before - after).toBeCloseTo(
      changes.reduce((sum, one) => sum + one.before - one.after, 0),
      6,
    )
  }
})

test.each([60, 100, 180])('lines fit %i columns, and texts can not steer a terminal', (width) => {
  const lines = changeLines(
    requestChanges(OWN, [...OWN.with(2, result('a', 'toolcall_ref id=1 tool=bash status=ok -> \u001b[31mred')), asks(long('\u001b]0;x'))]),
    width,
  )
  expect(lines.join(' ')).toContain('in place of the agent')
  // The reason is whole.
  expect(lines.map((line) => line.trim()).join(' ')).toContain('no longer worth its place; the id in this line brings the text back')
  for (const line of lines) expect([line, line.length <= width]).toEqual([line, true])
  expect(lines.join('\n')).not.toContain('\u001b')
})

test('the sums are of all changes, also where only the newest are listed', () => {
  const sent = OWN.map((message) =>
    message.role === 'toolResult' ? result(message.toolCallId!, `toolcall_ref id=1 tool=bash status=ok -> ${message.toolCallId}`) : message,
  )
  const all = requestChanges(OWN, sent)
  const [whole, newest] = [changeLines(all, 100), changeLines(all, 100, 1)]
  expect(newest[1]).toMatch(/^replaced +2 /)
  expect(newest.slice(0, 3)).toEqual(whole.slice(0, 3))
  expect(newest.join('\n')).toContain('output of bash cat b')
  expect(newest.join('\n')).not.toContain('output of bash cat a')
  expect(changeLines(all, 100, 0)).toEqual(whole.slice(0, 3))
})

test('a request as the agent wrote it takes one line', () => {
  expect(changeLines(requestChanges(OWN, OWN), 80)).toEqual(['The model gets what the agent wrote: 7 parts are unchanged.'])
})
