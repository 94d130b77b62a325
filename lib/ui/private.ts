/** Files written by a command: readable only by their owner, and complete or absent. */
import { lstatSync } from 'node:fs'
import { PrivateFile, whileUnfinished } from '../core/index.ts'
import { reasonOf, UsageError } from './terminal.ts'

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

function refuse(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new UsageError(`${path} is not a regular file; name a new file, or one to replace`)
}
