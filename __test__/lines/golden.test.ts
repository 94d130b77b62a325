/** The golden vectors of our lines through the addon; crates/lines/tests/golden.rs compares the crate itself with them. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { HitLine } from '../../index.js'
import {
  activeHeading,
  callInMark,
  headerLine,
  headerOf,
  hitLine,
  hitOf,
  isBegun,
  isPointed,
  isReference,
  nameInPath,
  namesIn,
  pointedText,
  pointerTo,
  poolLineOf,
  referenceOf,
} from '../../lib/lines/index.ts'

interface Vector<T> {
  name?: string
  text: string
  value: T
}

interface Lines {
  hits: Vector<HitLine | null>[]
  references: Vector<{ id: string; tool: string; status?: string } | null>[]
  pointed: Vector<{ words: string; reference: string } | null>[]
  headers: Vector<{ id: string; rest: string } | null>[]
  poolLines: Vector<object | null>[]
  paths: Vector<string | null>[]
  names: Vector<string[]>[]
  begun: Vector<boolean>[]
  marks: Vector<string | null>[]
  written: { line: string; args: string[]; text: string }[]
}

const golden = (name: string): string => readFileSync(new URL(`../../fixtures/golden/${name}`, import.meta.url), 'utf8')

const { hits, references, pointed, headers, poolLines, paths, names, begun, marks, written, ...others } = JSON.parse(golden('lines.json')) as Lines

test('each group of vectors is compared here, or the readme says that TypeScript does not use it', () => {
  const named = golden('README.md').matchAll(/^\| `(\w+)` \|/gm)
  expect(Object.keys(others).toSorted()).toEqual(Array.from(named, ([, group]) => group).toSorted())
})

test.each(references)('reference: $name', ({ text, value }) => {
  expect(referenceOf(text) ?? null).toEqual(value)
  expect(isReference(text)).toBe(value !== null)
  if (value !== null && value.status === undefined) expect(pointerTo(value.id, value.tool)).toBe(text)
})

test.each(pointed)('words that point to a reference: $name', ({ text, value }) => {
  expect(isPointed(text)).toBe(value !== null)
  if (value !== null) expect(pointedText(value.words, value.reference)).toBe(text)
})

test.each(headers)('header: $name', ({ text, value }) => {
  const header = headerOf(text)
  expect(header === undefined ? null : { id: header.id, rest: text.slice(header.length) }).toEqual(value)
})

test.each(poolLines)('line of the pool: $name', ({ text, value }) => {
  expect(poolLineOf(text) ?? null).toEqual(value)
})

test.each(hits)('hit: $name', ({ text, value }) => {
  expect(hitOf(text) ?? null).toEqual(value)
  if (value !== null) expect(hitLine(value)).toBe(text)
})

test.each(paths)('name in the path $text', ({ text, value }) => {
  expect(nameInPath(text) ?? null).toBe(value)
})

test.each(names)('names in $text', ({ text, value }) => {
  expect(namesIn(text)).toEqual(value)
})

test.each(begun)('mark at the end of $text: $value', ({ text, value }) => {
  expect(isBegun(text)).toBe(value)
})

test.each(marks)('mark $text', ({ text, value }) => {
  expect(callInMark(text) ?? null).toBe(value)
})

test.each(written.filter(({ line }) => ['header', 'active'].includes(line)))('line of the kind $line: $text', ({ line, args, text }) => {
  expect((line === 'header' ? headerLine : activeHeading)(args[0]!)).toBe(text)
})

test('a name in a pointer can be told from a field', () => {
  const pointer = pointerTo('call_1 tool=x', 'a\ntool')
  expect(pointer).toBe('toolcall_ref id=call_1\\u{20}tool=x tool=a\\ntool')
  expect(referenceOf(pointer)).toMatchObject({ id: 'call_1 tool=x', tool: 'a\ntool' })
})
