/** Private files: whole or absent, for their owner alone, and never written through a link. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PrivateFile, UNFINISHED, writePrivateFile } from '../lib/core/private-file.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'private-file-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test.skipIf(process.platform === 'win32')('a new folder and its file are for their owner alone', () => {
  const path = join(folder, 'new', 'file')
  writePrivateFile(path, 'täxt')
  expect(readFileSync(path, 'utf8')).toBe('täxt')
  expect([statSync(path), statSync(join(folder, 'new'))].map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700])
})

test('a link at the path is replaced, and its target is left alone', () => {
  const [path, other] = [join(folder, 'file'), join(folder, 'other')]
  writeFileSync(other, 'other')
  symlinkSync(other, path)
  writePrivateFile(path, 'text')
  expect([readFileSync(path, 'utf8'), readFileSync(other, 'utf8')]).toEqual(['text', 'other'])
})

test('without replacing, the first file stays, and nothing is left beside it', () => {
  const path = join(folder, 'file')
  writePrivateFile(path, 'first', { replace: false })
  expect(() => writePrivateFile(path, 'second', { replace: false })).toThrow('EEXIST')
  expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['first', ['file']])
})

test('an unfinished file has a name that doctor knows, and a discarded or failed one is gone', () => {
  const file = new PrivateFile(join(folder, 'x'.repeat(255)))
  expect(readdirSync(folder)).toEqual([expect.stringMatching(UNFINISHED)])
  file.discard()
  mkdirSync(join(folder, 'taken'))
  expect(() => writePrivateFile(join(folder, 'taken'), 'text')).toThrow()
  expect(readdirSync(folder)).toEqual(['taken'])
})
