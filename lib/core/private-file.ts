/**
 * Files that only their user can read: each is whole or absent, and a link planted at its path is replaced, never followed.
 * What a killed process left unfinished has a name that `doctor` finds.
 */
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'

/** The names of unfinished files, here and in the native part: the final name, the process, 16 random digits. */
export const UNFINISHED = /^\..+\.(\d+)-[0-9a-f]{16}\.part$/

/** True if there is a process of this number. */
export function isRunning(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A file under an unfinished name beside its path, with mode 0600. */
export class PrivateFile {
  readonly #path: string
  readonly #unfinished: string
  readonly #file: number

  /** Creates the file. Throws the system's error. */
  constructor(path: string) {
    const name = basename(path).slice(0, 100)
    this.#path = path
    this.#unfinished = join(dirname(path), `.${name}.${process.pid}-${randomBytes(8).toString('hex')}.part`)
    this.#file = openSync(this.#unfinished, 'wx', 0o600)
  }

  /** Adds text. */
  write(text: string): void {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length;) from += writeSync(this.#file, bytes, from)
  }

  /** Waits until the disk has all of it. */
  sync(): void {
    fsyncSync(this.#file)
  }

  /** Gives the file its name. With `replace: false` it throws `EEXIST` if there is one of this name. */
  finish({ replace = true } = {}): void {
    closeSync(this.#file)
    try {
      if (replace) return renameSync(this.#unfinished, this.#path)
      linkSync(this.#unfinished, this.#path)
      rmSync(this.#unfinished, { force: true })
    } catch (error) {
      rmSync(this.#unfinished, { force: true })
      throw error
    }
  }

  /** Removes the unfinished file. */
  discard(): void {
    closeSync(this.#file)
    rmSync(this.#unfinished, { force: true })
  }
}

/**
 * Writes a whole text, and creates the folder if it is missing. It does not sync: use {@link PrivateFile} for a text that must
 * survive a power failure. With `replace: false` it throws `EEXIST` if there is a file. Throws the system's error.
 */
export function writePrivateFile(path: string, text: string, options: { replace?: boolean } = {}): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = new PrivateFile(path)
  try {
    file.write(text)
  } catch (error) {
    file.discard()
    throw error
  }
  file.finish(options)
}
