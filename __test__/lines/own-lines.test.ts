/** The check that our lines are read in one place. */
import { expect, test } from 'vitest'
import { ownLines } from '../../scripts/own-lines.mjs'

test.each([
  ['a pattern', String.raw`const id = /^toolcall_ref id=(\S+)/.exec(text)?.[1]`],
  ['a pattern of a header', String.raw`const is = /^id=([0-9a-f]{8,})(?:\n|$)/.test(text)`],
  ['a pattern of names', String.raw`for (const one of text.matchAll(/\bid=([0-9a-f]{8})\b/g)) add(one)`],
  ['a pattern of a mark', String.raw`const MARK = /^\[collapsed #(\w+): \d+ chars\]$/`],
  ['a pattern that is put together', 'const is = new RegExp(`^toolcall_ref id=${id}`)'],
  ['a comparison', "const is = text.startsWith('toolcall_ref ')"],
  ['a comparison with a name for the text', "const REFERENCE = 'toolcall_ref '\nconst is = text.startsWith(REFERENCE)"],
  ['a field', "const failed = line.includes(' status=fail')"],
  ['a line that is written', 'const line = `toolcall_ref id=${id} tool=${tool}`'],
  ['a header that is written', 'const text = `id=${id}\\n${output}`'],
])('%s is found', (_what, code) => {
  expect(ownLines(code)).toHaveLength(1)
})

test.each([
  ['a sentence about our lines', "const sentence = 'pass the id of an output, as shown in its toolcall_ref line'"],
  ['a comment', '// toolcall_ref id=1 tool=bash status=ok\nconst one = 1'],
  ["another program's field", "const is = url.includes('session_id=')"],
  ['a use of lib/lines', 'const id = referenceOf(text)?.id'],
])('%s is not', (_what, code) => {
  expect(ownLines(code)).toEqual([])
})
