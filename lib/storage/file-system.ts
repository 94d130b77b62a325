import { unlinkSync } from 'node:fs'
import * as nodeFileSystem from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, reasonOf, StorageError } from './error.ts'
import { OutputDirectory, outputFileName, outputNames, outputTemporaryName } from './native.ts'
import { storedContext } from './stored.ts'
import type { IFileSystem } from './types.ts'

/** The result for one requested file: its text, or why there is none. */
export interface OutputText {
  text?: string
  reason?: string
}

/** The files of one directory: the native class, or {@link FileSystemDirectory}. */
export interface OutputFiles {
  /** Writes a whole new file and resolves with its name. */
  save(tool: string, args: string, text: string, timestamp: number, counter: number): Promise<string>
  /** Reads whole files by name, in the given order. */
  load(names: string[]): Promise<OutputText[]>
  /** Reads files by name without their results, in the given order. */
  metadata(names: string[]): Promise<OutputText[]>
  /** The names of all output files, oldest first. */
  names(): Promise<string[]>
  /** Removes all output files and the remains of interrupted saves. */
  clear(): Promise<number>
  /** Removes some files; missing ones are skipped. */
  remove(names: string[]): Promise<number>
}

/** The files of a directory in the local file system, which can also be removed when the process exits. */
export interface OwnFiles extends OutputFiles {
  /** Removes some files synchronously and returns the number of those that existed. */
  removeNow(names: string[]): number
}

/** A directory in the local file system, through the native class if there is one. */
export function ownDirectory(path: string, durable: boolean): OwnFiles {
  if (OutputDirectory !== undefined) return new OutputDirectory(path, durable)
  const files = new FileSystemDirectory(nodeFileSystem as IFileSystem, path, durable)
  return Object.assign(files, {
    removeNow: (names: string[]): number => names.filter((name) => unlinkNow(join(path, name))).length,
  })
}

function unlinkNow(path: string): boolean {
  try {
    unlinkSync(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw failure('remove', path, error)
  }
}

/** The same number of attempts as the native class. */
const SAVE_ATTEMPTS = 16
/** How many files are read at once, so that a long list does not exhaust the file descriptors. */
const READS_AT_ONCE = 32

/**
 * The same as the native directory, over a caller's file system: temporary file, flush, rename. An {@link
 * IFileSystem} can't flush the directory itself.
 */
export class FileSystemDirectory implements OutputFiles {
  readonly #fs: IFileSystem
  readonly #path: string
  readonly #durable: boolean
  #created = false

  constructor(fs: IFileSystem, path: string, durable: boolean) {
    this.#fs = fs
    this.#path = path
    this.#durable = durable
  }

  async save(tool: string, args: string, text: string, timestamp: number, counter: number): Promise<string> {
    for (let attempt = 0; attempt < SAVE_ATTEMPTS; attempt += 1) {
      const name = outputFileName(tool, args, timestamp, counter)
      const target = join(this.#path, name)
      const temporary = join(this.#path, outputTemporaryName(name))
      try {
        if (!this.#created) await this.#fs.mkdir(this.#path, { recursive: true, mode: 0o700 })
        this.#created = true
        await this.#fs.writeFile(temporary, text, { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: this.#durable })
      } catch (error) {
        // If another process is writing this name, the name belongs to it.
        if (codeOf(error) === 'EEXIST') continue
        if (codeOf(error) === 'ENOENT' && this.#created) {
          this.#created = false
          continue
        }
        await this.#discard(temporary)
        throw failure('write', target, error)
      }
      try {
        if (await this.#exists(target)) {
          await this.#discard(temporary)
          continue
        }
        await this.#fs.rename(temporary, target)
        return name
      } catch (error) {
        // Another process cleared the directory including this file, so start again.
        if (codeOf(error) === 'ENOENT') continue
        await this.#discard(temporary)
        throw failure('write', target, error)
      }
    }
    throw failure('create a file in', this.#path, new Error('no free name was found'))
  }

  load(names: string[]): Promise<OutputText[]> {
    return this.#each(names, (text) => ({ text }))
  }

  metadata(names: string[]): Promise<OutputText[]> {
    return this.#each(names, (text) => {
      const { result: _, ...metadata } = storedContext(text)
      return { text: JSON.stringify(metadata) }
    })
  }

  async names(): Promise<string[]> {
    return this.#files(outputNames(await this.#list(), false))
  }

  async clear(): Promise<number> {
    const entries = await this.#list()
    const ours = [...outputNames(entries, false), ...outputNames(entries, true)]
    return await this.remove(await this.#files(ours))
  }

  async remove(names: string[]): Promise<number> {
    let removed = 0
    let failed: StorageError | undefined
    for (const name of names) {
      const path = join(this.#path, name)
      try {
        await this.#fs.unlink(path)
        removed += 1
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') failed = failure('remove', path, error)
      }
    }
    if (failed !== undefined) throw failed
    return removed
  }

  async #list(): Promise<string[]> {
    try {
      return await this.#fs.readdir(this.#path)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return []
      throw failure('list', this.#path, error)
    }
  }

  async #files(names: string[]): Promise<string[]> {
    const kinds = await Promise.all(names.map((name) => this.#isFile(join(this.#path, name)).catch(() => false)))
    return names.filter((_, i) => kinds[i])
  }

  async #isFile(path: string): Promise<boolean> {
    return (await this.#fs.stat(path)).isFile()
  }

  async #exists(path: string): Promise<boolean> {
    return await this.#fs.stat(path).then(
      () => true,
      () => false,
    )
  }

  async #each(names: string[], read: (text: string) => OutputText): Promise<OutputText[]> {
    const texts: OutputText[] = []
    for (let i = 0; i < names.length; i += READS_AT_ONCE) {
      texts.push(...(await Promise.all(names.slice(i, i + READS_AT_ONCE).map((name) => this.#read(name, read)))))
    }
    return texts
  }

  async #read(name: string, read: (text: string) => OutputText): Promise<OutputText> {
    if (outputNames([name], false).length === 0) return { reason: "it is no output file's name" }
    const path = join(this.#path, name)
    try {
      if (!(await this.#isFile(path))) return { reason: 'it is no regular file' }
      return read(await this.#fs.readFile(path, 'utf8'))
    } catch (error) {
      return { reason: reasonOf(error) }
    }
  }

  /** Removes a file that nobody knows of yet; if that fails too, `clear` removes it later. */
  async #discard(path: string): Promise<void> {
    await this.#fs.unlink(path).catch(() => undefined)
  }
}

function failure(action: string, path: string, error: unknown): StorageError {
  const code = codeOf(error)
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new StorageError('STORE_FULL', `no room left to ${action} ${path}: free some space and save again`, error)
  }
  const hint = 'check that the directory exists and may be written'
  return new StorageError('IO', `can't ${action} ${path}: ${reasonOf(error)}; ${hint}`, error)
}
