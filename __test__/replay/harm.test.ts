/** Strong missed uses that probably harm. */
import { describe, expect, test } from 'vitest'
import { HARM_CLASSES, isProbablyHarm } from '../../lib/replay/missed/harm.ts'
import type { HarmClass } from '../../lib/replay/missed/harm.ts'
import { addUses, noUses } from '../../lib/replay/missed/uses.ts'
import { missed, outputs, read, RUNS, stepsFrom } from './talk.ts'
import type { Line } from './talk.ts'

/** More than a line: three sentences of it, which have more than five quotes. */
const LONG = `${RUNS}. Shipping is free above fifty euros, and returns cost nothing within a month of the order`
/** One line with three quotes or a few more. */
const LINE = 'the price of every part is rounded up to whole cents'

const OTHER: Line = { says: 'something else, with no earlier source' }
const bash = (command: string, output = ''): Line => ({ calls: ['bash', { command }, output] })
const edit = (newText: string, path = 'b'): Line => ({ calls: ['edit', { path, edits: [{ oldText: 'x', newText }] }, 'done'] })
const first = (key: string): boolean => key === 'r1' || key === 'a1'

describe('a strong missed use', () => {
  test.each<[string, Line[], HarmClass]>([
    ['for code', [read(LONG), OTHER, edit(LONG)], 'in code or a command'],
    ['for a command', [read(LONG), OTHER, bash(`echo ${LONG}`)], 'in code or a command'],
    ['in an answer', [read(LONG), OTHER, { says: LONG }], 'in words'],
    ['in thinking', [read(LONG), OTHER, { thinks: LONG, says: 'so' }], 'in words'],
    [
      'in several places counts for the one with most of it',
      [read(LONG), OTHER, { thinks: RUNS, calls: ['bash', { command: LONG }, ''] }],
      'in code or a command',
    ],
    ['of one line', [read(LINE), OTHER, bash(`echo ${LINE}`)], 'one line'],
    ['that the command shows anyway', [read(LONG), OTHER, bash(`grep '${LONG}'`, LONG)], 'in the next result'],
    ['half of which the command shows', [read(LONG), OTHER, bash(`grep '${LONG}'`, LONG.slice(0, 150))], 'in the next result'],
    ['that comes one call too late', [read(LONG), OTHER, bash(`echo ${LONG}`, 'no'), bash('cat b', LONG)], 'in code or a command'],
    ['before the file is read again', [read(LONG), OTHER, edit(LONG), OTHER, read('x')], 'file read again'],
    ['long before the file is read again', [read(LONG), OTHER, edit(LONG), OTHER, OTHER, OTHER, read('x')], 'in code or a command'],
    ['of own code in an edit', [edit(LONG), OTHER, edit(LONG, 'c')], 'own code again'],
    ['of own arguments', [bash(`echo ${LONG}`), OTHER, bash(`printf ${LONG}`)], 'own arguments'],
    ['for a search', [read(LONG), OTHER, { calls: ['grep', { pattern: LONG }, 'none'] }], 'for a search'],
  ])('%s', (_, lines, wanted) => {
    const uses = missed(stepsFrom([{ user: 'begin' }, ...lines]), first)
    const found = HARM_CLASSES.filter((name) => uses.byHarm[name] > 0)
    expect([found, uses.toolText.strong]).toEqual([[wanted], 1])
    expect(uses.probableHarm).toBe(isProbablyHarm(wanted) ? 1 : 0)
  })

  test('is classified once, and the classes add up to all of them', () => {
    const [a, b, c] = ['carts', 'orders', 'parts'].map((name) => LONG.replaceAll(' ', ` ${name} `)) as [string, string, string]
    const lines: Line[] = [{ user: 'go' }, read(a), read(b), read(c), OTHER, edit(a), { user: 'on' }, { says: b }, { user: 'and' }, bash(`echo ${c}`, c)]
    const uses = missed(stepsFrom(lines), outputs)
    const sum = HARM_CLASSES.reduce((total, name) => total + uses.byHarm[name], 0)
    expect([sum, uses.toolText.strong]).toEqual([3, 3])
    expect(uses.probableHarm).toBe(2)
    const two = noUses()
    addUses(two, uses)
    addUses(two, uses)
    expect(two.probableHarm).toBe(4)
    expect(two.byHarm['in the next result']).toBe(2)
  })

  test('own words have no class', () => {
    const uses = missed(stepsFrom([{ user: 'go' }, { thinks: LONG, says: 'hm' }, { says: LONG }]), (_, { label }) => label === 'thinking')
    expect([uses.ownWords.strong, uses.probableHarm, Object.values(uses.byHarm).every((count) => count === 0)]).toEqual([1, 0, true])
  })
})
