/** A saving in words; one that is none says so. */
import { expect, test } from 'vitest'
import { compared, difference, savingCell, savingText } from '../lib/ui/saving.ts'

const tokens = (amount: number): string => `${amount} tokens`

test.each<[number, string, string]>([
  [664, 'saved 664 tokens', '664 tokens'],
  [0, 'saved 0 tokens', '0 tokens'],
  [-664, 'cost 664 tokens more', '664 tokens more'],
])('an amount: %s', (saved, text, cell) => {
  expect(savingText(saved, tokens)).toBe(text)
  expect(savingCell(saved, tokens)).toBe(cell)
})

test.each<[number, string, string]>([
  [0.88, '12 % less', '12 % less than'],
  [1.001, 'the same', 'the same as'],
  [1.05, '5 % more', '5 % more than'],
])('a ratio: %s', (ratio, text, than) => {
  expect(difference(ratio)).toBe(text)
  expect(compared(ratio)).toBe(than)
})
