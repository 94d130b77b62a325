/** Files written by a command: readable only by their owner, and complete or absent. */
import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { UsageError } from './terminal.ts'

/**
 * A file with mode 0600 that is written under a new name and renamed when it is complete, so that a link planted at the
 * path is never followed.
 */
export class PrivateFile {
  readonly #path: string
  readonly #beside: string
  readonly #file: number

  /** Throws a {@link UsageError} if anything but a regular file is at the path. */
  constructor(path: string) {
    refuse(path)
    this.#path = path
    this.#beside = join(dirname(path), `.${basename(path).slice(0, 40)}.${randomBytes(8).toString('hex')}.part`)
    this.#file = openSync(this.#beside, 'wx', 0o600)
  }

  write(text: string): void {
    writeSync(this.#file, text)
  }

  /** Puts the file into its place. Throws as the constructor does; then there is no file. */
  finish(): void {
    try {
      try {
        fsyncSync(this.#file)
      } finally {
        closeSync(this.#file)
      }
      refuse(this.#path)
      renameSync(this.#beside, this.#path)
    } catch (error) {
      rmSync(this.#beside, { force: true })
      throw error
    }
  }

  /** Leaves nothing behind. */
  abandon(): void {
    closeSync(this.#file)
    rmSync(this.#beside, { force: true })
  }
}

/** Writes a {@link PrivateFile}. Throws a {@link UsageError} if anything but a regular file is at the path. */
export async function writePrivately(path: string, work: (write: (text: string) => void) => Promise<void>): Promise<void> {
  const file = new PrivateFile(path)
  try {
    await work((text) => file.write(text))
  } catch (error) {
    file.abandon()
    throw error
  }
  file.finish()
}

function refuse(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new UsageError(`${path} is not a regular file`)
}
