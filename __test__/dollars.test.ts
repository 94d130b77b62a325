/** Amounts in dollars: one function writes them, so that a sum reads the same on every surface. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { dollars } from '../lib/ui/dollars.ts'

test.each<[amount: number, digits: number | undefined, text: string]>([
  [0, undefined, '$0.00'],
  [1234.5, undefined, '$1234.50'],
  [-1.2, undefined, '-$1.20'],
  [-0.001, undefined, '$0.00'],
  [0.0071, 3, '$0.007'],
  [-0.0071, 3, '-$0.007'],
])('%d with %s digits is %s', (amount, digits, text) => {
  expect(dollars(amount, digits)).toBe(text)
})

test('an order of the same prices makes no other cent', () => {
  const prices = [0.1, 0.2, 0.3, 0.405]
  expect(dollars(prices.reduce((sum, one) => sum + one, 0))).toBe(dollars(prices.toReversed().reduce((sum, one) => sum + one, 0)))
})

/** A template that writes a sign before a number by itself. The name of a variable of the shell is a constant in capitals. */
const OWN = /\$\$\{(?![A-Z_]+\})/

test('no other source writes a dollar sign before a number', () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const sources = ['lib', 'extensions'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const own = sources.filter((path) => path.endsWith('.ts') && OWN.test(readFileSync(join(root, path), 'utf8')))
  expect(own).toEqual(['lib/ui/dollars.ts'])
})
