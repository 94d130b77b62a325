/** Files written by a command: readable only by their owner, and complete or absent. */
import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { reasonOf, UsageError } from './terminal.ts'
import { unfinishedName, whileUnfinished } from './unfinished.ts'

/**
 * Writes a file with mode 0600 under a new name and renames it when it is complete, so that a link planted at the path is
 * never followed. Throws a {@link UsageError} if anything but a regular file is at the path; then nothing is written.
 */
export async function writePrivately(path: string, work: (write: (text: string) => void) => Promise<void>): Promise<void> {
  refuse(path)
  await whileUnfinished(path, async () => {
    const beside = unfinishedName(path)
    const file = opened(beside, path)
    try {
      try {
        await work((text) => void writeSync(file, text))
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      refuse(path)
      renameSync(beside, path)
    } catch (error) {
      rmSync(beside, { force: true })
      throw error
    }
  })
}

function opened(beside: string, path: string): number {
  try {
    return openSync(beside, 'wx', 0o600)
  } catch (error) {
    throw new UsageError(`${path} can't be written: ${reasonOf(error)}`)
  }
}

function refuse(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
    throw new UsageError(`${path} is not a regular file; name a new file, or one to replace`)
}
