import { afterEach, describe, expect, test } from 'vitest'
import { lookAgain, needsOf, readAgain, searchAgain, seen } from '../../lib/replay/again.ts'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { Files } from '../../lib/recordings/files.ts'
import { cleanUp } from '../../rig/cleanup.ts'

afterEach(cleanUp)

function about(path: string | undefined, text: string, output?: string): ReplayBlock {
  const block: ReplayBlock = { bytes: text, units: text.length, label: 'read', texts: [text] }
  return { ...block, ...(path !== undefined && { path }), ...(output !== undefined && { output }) }
}

const edit = (args: object) => ({
  role: 'assistant',
  content: [{ type: 'toolCall', id: 'c', name: 'edit', arguments: args as Record<string, unknown> }],
})

test.each([
  [{ path: 'a', oldText: 'x', newText: 'y' }, [{ path: 'a', texts: ['x'] }]],
  [
    {
      path: 'a',
      edits: [
        { oldText: 'x', newText: 'y' },
        { oldText: 'z', newText: '' },
      ],
    },
    [{ path: 'a', texts: ['x', 'z'] }],
  ],
  [{ path: 'a', edits: [null, 3] }, [{ path: 'a', texts: [] }]],
  [{ path: 7, oldText: 'x', newText: 'y' }, []],
])('the edit %j needs %j', (args, needs) => {
  expect(needsOf(edit(args))).toEqual(needs)
})

describe('text in sight', () => {
  const need = { path: 'a.ts', texts: ['let one', 'let two'] }
  test('counts where it is about the file', () => {
    const blocks = [about('a.ts', 'let one = 1'), about('b.ts', 'let two = 2'), about(undefined, 'let two')]
    expect([...seen(blocks, need, false)]).toEqual(['let one'])
    expect([...seen(blocks, need, true)]).toEqual(['let one', 'let two'])
  })

  test('reads again the newest output that shows the missing text', () => {
    const blocks = [about('a.ts', 'let one', 'whole, old'), about('a.ts', 'let one', 'a part'), about('a.ts', 'else', 'other part')]
    expect(lookAgain(blocks, { path: 'a.ts', texts: ['let one'] }, new Files())).toEqual({ text: 'a part' })
    expect(lookAgain([about(undefined, 'let one here')], { path: 'a.ts', texts: ['let one'] }, new Files())).toEqual({
      text: 'let one here',
    })
    expect(lookAgain([], need, new Files())).toBeUndefined()
  })

  const lines = (count: number): string[] => Array.from({ length: count }, (_, n) => `line ${n + 1} of many`)

  test('reads only the lines around the place in a large file, after a search for it', () => {
    const whole = lines(1000).join('\n')
    const texts = ['line 500 of', 'line 510 of many']
    const again = lookAgain([about('a.ts', whole, whole)], { path: 'a.ts', texts }, new Files())!
    expect(again.text.split('\n')).toEqual(lines(1000).slice(469, 540))
    expect(again.found).toEqual({ line: 500, text: 'line 500 of many' })
    const numbered = lines(1000)
      .map((line, n) => `${String(n + 1).padStart(6)}\u2192${line}`)
      .join('\n')
    const part = lookAgain([about('a.ts', whole, numbered)], { path: 'a.ts', texts }, new Files())!
    expect(part.text.split('\n')[0]).toBe('   470\u2192line 470 of many')
    expect(part.text.split('\n')).toHaveLength(71)
  })

  test.each([
    [1, 1, 31],
    [1000, 970, 31],
  ])('around line %i there are lines %i to the end or %i', (at, first, count) => {
    const whole = lines(1000).join('\n')
    const again = lookAgain([about('a.ts', whole, whole)], { path: 'a.ts', texts: [`line ${at} of many`] }, new Files())!
    expect(again.text.split('\n')).toEqual(lines(1000).slice(first - 1, first - 1 + count))
  })

  test('a read again is a call with its result', () => {
    const file = { kind: 'read', path: 'a.ts', content: 'x\ntext\ny', offset: 2, limit: 1 } as const
    const [answer, result] = readAgain('a.ts', { text: 'text', file }, 3, 7)
    const [call] = answer.message.content as { id: string; arguments: object }[]
    expect(result.message.toolCallId).toBe(call?.id)
    expect(call?.arguments).toEqual({ path: 'a.ts', offset: 2, limit: 1 })
    expect(searchAgain('a.ts', { line: 2, text: ' text' }, 3, 7)[1].message.content).toEqual([{ type: 'text', text: '2:  text' }])
  })
})
