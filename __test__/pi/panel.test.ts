/** `/context` in a terminal: what its keys do, and that it says what is true. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { KEYS, startTerminal } from '../../rig/terminal.ts'
import type { PiTerminal } from '../../rig/terminal.ts'
import { lines, put, reference, setUp, TOOLS_AT_ONCE } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

/** Pi in a terminal after four prompts: `a.txt` was read in the first and is stale by now. Answers begin with `more`. */
async function afterFour(columns = 100, rows = 30, more = ''): Promise<{ setting: Setting; terminal: PiTerminal }> {
  const setting = await setUp(
    (_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a'], ['bash', { command: 'cat b.txt' }, 'call_b']) : `${more}answer ${n}.`),
    { context: TOOLS_AT_ONCE },
  )
  put(setting.home, 'a.txt', lines('a', 60))
  put(setting.home, 'b.txt', lines('b', 300))
  const terminal = await startTerminal({ ...setting.load, columns, rows })
  for (const [index, prompt] of ['one', 'two', 'three', 'four'].entries()) {
    await terminal.press(`${prompt}${KEYS.enter}`, new RegExp(`answer ${index + 1}\\.`))
  }
  return { setting, terminal }
}

test('an output that is brought back several times is sent once', async () => {
  const { setting, terminal } = await afterFour()
  await terminal.press(`/context roll${KEYS.enter}`, /Rolled: 2 items/)
  await terminal.press(`/context${KEYS.enter}`, /bring back/)
  await terminal.press('/a.txt', /\/a\.txt/)
  await terminal.redraws(KEYS.enter)
  await terminal.press('b', /a\.txt +returning +[\d.]+k?[^]*a\.txt goes to the model with your next message\./)
  await terminal.press('b', /already goes to the model with your next message/)
  await terminal.press('d', /still goes to the model with your next message/)
  // The other output is in the list again.
  await terminal.press(KEYS.escape, /cat b\.txt/)
  await terminal.redraws('q')
  await terminal.press(`five${KEYS.enter}`, /answer 5\./)
  // It is in the conversation now, and does not come a second time.
  await terminal.press(`/context${KEYS.enter}`, /a\.txt +brought back +[\d.]+k?[^]*b bring back/)
  await terminal.press('/a.txt', /\/a\.txt/)
  await terminal.redraws(KEYS.enter)
  await terminal.press('b', /has been brought back already/)
  // The other output is in the list again.
  await terminal.press(KEYS.escape, /cat b\.txt/)
  await terminal.redraws('q')
  await terminal.press(`six${KEYS.enter}`, /answer 6\./)
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  setting.server.check()
  const last = setting.server.requests.at(-1)!
  expect(last.messages.filter((message) => message.text.includes('a line 30:'))).toHaveLength(1)
  expect(JSON.stringify(last.messages.map((message) => message.text))).toContain(reference('call_a', 'read'))
})

test('keys roll, undo and switch, and never contradict the screen', async () => {
  const { setting, terminal } = await afterFour(60, 16)
  const opened = await terminal.press(`/context${KEYS.enter}`, /esc close/)
  expect(opened).toMatch(/Context [\d.]+k of 200k tokens \(\d %\)/)
  expect(opened).toMatch(/ a\.txt +(full|excerpt)/)
  expect(opened).toMatch(/ cat b\.txt +(full|excerpt)/)
  const hint = /r roll ([\d.]+k?), /.exec(opened)?.[1]
  expect(opened).toMatch(/ a\.txt +(full|excerpt) +[\d.]+k? +may collapse/)
  const rolled = await terminal.press('r', /Rolled: 2 items/)
  expect(rolled).toContain(`Rolled: 2 items, ${hint} tokens removed`)
  await terminal.press('r', /Nothing is old enough to collapse\./)
  await terminal.press('p', /Pinned\. .*goes to the model with your next message\./)
  // Undone text stays for some turns, and no row says that a roll would take it.
  const undone = await terminal.press('u', /Undone: 2 messages are shown as they were before the roll\./)
  expect(undone).not.toContain('may collapse')
  await terminal.press('r', /Nothing is old enough to collapse\./)
  await terminal.press('o', /collapsing is off/)
  await terminal.press('o', /collapsing is on/)
  await terminal.redraws('q')
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  setting.server.check()
})

test('enter opens an output, in full and as the model sees it, and the changes of its file', async () => {
  const { setting, terminal } = await afterFour(80, 24)
  await terminal.press(`/context roll${KEYS.enter}`, /Rolled: 2 items/)
  put(setting.home, 'a.txt', lines('a', 60).replace('a line 30:', 'changed line 30:'))
  await terminal.press(`five${KEYS.enter}`, /answer 5\./)
  await terminal.press(`/context${KEYS.enter}`, /enter open/)
  await terminal.press('/a.txt', /\/a\.txt/)
  await terminal.redraws(KEYS.enter)
  const opened = await terminal.press(KEYS.enter, /in full, as recorded \(1\/3, tab\)/)
  expect(opened).toMatch(/a line 1:/)
  expect(opened).toMatch(/60 lines; bringing it back adds [\d.]+k? tokens/)
  await terminal.press('G', /lines \d+-60 of 60/)
  expect(await terminal.press('\t', /as the model sees it \(reference\)/)).toContain(reference('call_a', 'read'))
  const change = await terminal.press('\t', /change of the file, \d{4}-\d\d-\d\d/)
  expect(change).toMatch(/-a line 30:[^]*\+changed line 30:/)
  await terminal.press('q', /enter open/)
  await terminal.press('?', /any key goes back/)
  await terminal.press('?', /enter open/)
  // Not before the other output is in the list again: an escape and the next key can be read as one.
  await terminal.press(KEYS.escape, /cat b\.txt/)
  await terminal.redraws('q')
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  setting.server.check()
})

test('a roll that pays back late asks first: n and escape leave everything, y rolls', async () => {
  const { setting, terminal } = await afterFour(100, 30, 'This answer is long. '.repeat(2000))
  const opened = await terminal.press(`/context${KEYS.enter}`, /esc close/)
  expect(opened).toMatch(/r roll [\d.]+k?/)
  const question = await terminal.press('r', /\(y\/n\)/)
  expect(question.replaceAll(/\s+/g, ' ')).toMatch(
    /This roll: 2 items, [\d.]+k tokens removed, cost [\d.]+k input tokens, pays back in \d+ calls\. Roll anyway/,
  )
  await terminal.press('n', /Nothing was rolled\./)
  await terminal.press('r', /\(y\/n\)/)
  await terminal.press(KEYS.escape, /Nothing was rolled\./)
  await terminal.press('r', /\(y\/n\)/)
  await terminal.press('y', /Rolled: 2 items/)
  await terminal.redraws('q')
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  setting.server.check()
})

test('an output whose call has become one line is listed with its size and its age, opened and brought back', async () => {
  const setting = await setUp((_request, n) => (n < 40 ? calls(['bash', { command: `cat big.txt # n${n}.` }, `call_${n}`]) : `answer ${n}.`), {
    context: TOOLS_AT_ONCE,
  })
  put(setting.home, 'big.txt', lines('big', 40))
  const terminal = await startTerminal({ ...setting.load, columns: 120, rows: 60 })
  await terminal.press(`one${KEYS.enter}`, /answer 40\./)
  await terminal.press(`two${KEYS.enter}`, /answer 41\./)
  await terminal.press(`/context roll${KEYS.enter}`, /Rolled: \d+ items/)
  await terminal.press(`/context${KEYS.enter}`, /bring back/)
  const listed = await terminal.press('/ line', /\(1\/\d+\)/)
  expect(listed).toMatch(/cat big\.txt # n23\. +line +[\d.]+k? +18 calls ago +turn 1/)
  await terminal.press(' n23.', /\(1\/1\)/)
  await terminal.redraws(KEYS.enter)
  await terminal.press(KEYS.enter, /big line 1:/)
  await terminal.press('q', /bring back/)
  await terminal.press('b', /returning/)
  // Not before the other outputs are in the list again: an escape and the next key can be read as one.
  await terminal.press(KEYS.escape, /# n(?!23)\d+\./)
  await terminal.redraws('q')
  await terminal.press(`three${KEYS.enter}`, /answer 42\./)
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  setting.server.check()
  expect(setting.server.requests.at(-1)!.messages.some(({ text }) => text.includes('big line 30:'))).toBe(true)
})
