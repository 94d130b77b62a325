import { afterEach, describe, expect, test } from 'vitest'
import { needsOf, readAgain, seen, textToRead } from '../../lib/replay/again.ts'
import type { Block } from '../../lib/replay/blocks.ts'
import { Files } from '../../lib/replay/files.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

function about(path: string | undefined, text: string, output?: string): Block {
  const block: Block = { bytes: text, units: text.length, label: 'read', texts: [text] }
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

describe('what is in sight', () => {
  const need = { path: 'a.ts', texts: ['let one', 'let two'] }
  test('counts where it is about the file', () => {
    const blocks = [about('a.ts', 'let one = 1'), about('b.ts', 'let two = 2'), about(undefined, 'let two')]
    expect([...seen(blocks, need, false)]).toEqual(['let one'])
    expect([...seen(blocks, need, true)]).toEqual(['let one', 'let two'])
  })

  test('what is read again is the newest output that shows what is missing', () => {
    const blocks = [
      about('a.ts', 'let one', 'whole, old'),
      about('a.ts', 'let one', 'a part'),
      about('a.ts', 'else', 'other part'),
    ]
    expect(textToRead(blocks, { path: 'a.ts', texts: ['let one'] }, new Files())).toBe('a part')
    expect(textToRead([about(undefined, 'let one here')], { path: 'a.ts', texts: ['let one'] }, new Files())).toBe(
      'let one here',
    )
    expect(textToRead([], need, new Files())).toBeUndefined()
  })

  test('a read again is a call with its result', () => {
    const [answer, result] = readAgain('a.ts', 'text', 3, 7)
    expect(result.message.toolCallId).toBe((answer.message.content as { id: string }[])[0]?.id)
  })
})
