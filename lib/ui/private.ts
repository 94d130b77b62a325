/** Files written by a command: readable only by their owner, and complete or absent. */
import { closeSync, lstatSync, openSync, readSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { PrivateFile, whileUnfinished } from '../core/index.ts'
import { reasonOf, UsageError } from './terminal.ts'

/** The files that commands write, in the words of a refusal, and how each of them begins. */
const KINDS = {
  'a page': /^<!doctype html>/i,
  'an export': /^\{"format":"pi-context-manager\/history"/,
  'a baseline': /^\{\s*"version":/,
} as const

/** The bytes that tell what a file is. */
const BEGINNING = 64

/**
 * Checks that a command may write to a path: there is nothing, an empty file, or an earlier file of its kind. So a store or a session that
 * is named by mistake stays. Throws a {@link UsageError} otherwise. Call it before a store is opened: to close a file of an open
 * database would end its locks.
 */
export function needReplaceable(path: string, kind: keyof typeof KINDS): void {
  const beginning = refuse(path) === undefined ? '' : beginningOf(path)
  if (beginning !== '' && !KINDS[kind].test(beginning)) throw new UsageError(`${path} exists and is not ${kind}, so it is not replaced; name another file`)
}

/** The beginning of a file as Latin-1. */
function beginningOf(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(BEGINNING)
      return bytes.toString('latin1', 0, readSync(file, bytes))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new UsageError(`${path} can't be read, so it is not replaced: ${reasonOf(error)}`)
  }
}

/**
 * Writes a private file piece by piece, durably. Throws a {@link UsageError} if anything but a regular file is at the path;
 * then nothing is written.
 */
export async function writePrivately(path: string, work: (write: (text: string) => void) => Promise<void>): Promise<void> {
  refuse(path)
  await whileUnfinished(path, async () => {
    const file = opened(path)
    try {
      await work((text) => file.write(text))
      file.sync()
      refuse(path)
    } catch (error) {
      file.discard()
      throw error
    }
    file.finish()
  })
}

function opened(path: string): PrivateFile {
  try {
    return new PrivateFile(path)
  } catch (error) {
    throw new UsageError(`${path} can't be written: ${reasonOf(error)}`)
  }
}

/** Looks at a path; undefined if there is nothing. Throws a {@link UsageError} for anything but a regular file. */
function refuse(path: string): Stats | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile() === false) throw new UsageError(`${path} is not a regular file; name a new file, or one to replace`)
  return found
}
