/** Answers about models that are kept by name. */
import { expect, test } from 'vitest'
import { remembered } from '../lib/models/remembered.ts'

test('an answer is found once for each name, and again once too many names have come', () => {
  const found: string[] = []
  const lengthOf = remembered(
    (name: string) => name,
    (name: string) => {
      found.push(name)
      return { length: name.length }
    },
  )
  expect([lengthOf('opus').length, lengthOf('opus').length, lengthOf('mini').length]).toEqual([4, 4, 4])
  expect(found).toEqual(['opus', 'mini'])
  for (let n = 0; n < 200; n += 1) lengthOf(`model-${n}`)
  lengthOf('opus')
  expect(found.filter((name) => name === 'opus')).toHaveLength(2)
})

test('a long name is answered and not kept', () => {
  let count = 0
  const asked = remembered(
    (name: string) => name,
    () => ({ count: (count += 1) }),
  )
  const long = 'x'.repeat(1000)
  expect([asked(long).count, asked(long).count]).toEqual([1, 2])
})

test('an answer that is shared can not be changed', () => {
  const asked = remembered(
    (name: string) => name,
    (name: string) => ({ name }),
  )
  expect(() => Object.assign(asked('opus'), { name: 'other' })).toThrow(TypeError)
})
