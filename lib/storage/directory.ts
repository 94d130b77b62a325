/** The output files of one directory: each is whole or absent, and no other file is touched. */
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, reasonOf, StorageError } from './error.ts'
import { atMost } from './gate.ts'
import { localFileSystem, syncDirectory } from './local.ts'
import { outputFileName, outputNames, outputTemporaryName } from './names.ts'
import type { IFileSystem } from './types.ts'

/** The result for one requested file: its text, or why there is none, as a clause that follows the file's name. */
export interface OutputText {
  text?: string
  reason?: string
}

/** The number of times that a save looks for a free name, or begins again because another process has cleared the directory. */
const SAVE_ATTEMPTS = 256
/** More saves and reads than these wait, so that many calls don't exhaust the file descriptors. */
const FILES_AT_ONCE = 32

/** Saves, reads and removes the output files of one directory. The first save creates the directory. */
export class OutputDirectory {
  readonly #fs: IFileSystem
  readonly #path: string
  readonly #isDurable: boolean
  /** Flushes the directory's entries; a caller's file system has no call for that. */
  readonly #flush: () => Promise<void>
  readonly #limited = atMost(FILES_AT_ONCE)
  #isCreated = false

  /** `path` is absolute. Without `fileSystem`, the directory is in the local file system. */
  constructor(path: string, isDurable: boolean, fileSystem?: IFileSystem) {
    this.#path = path
    this.#isDurable = isDurable
    this.#fs = fileSystem ?? localFileSystem(isDurable)
    this.#flush = isDurable && fileSystem === undefined ? sharedFlush(() => syncDirectory(path)) : async () => {}
  }

  /** Writes a whole new file and resolves with its name. `args` is JSON text; `timestamp` is in milliseconds. */
  save(tool: string, args: string, text: string, timestamp: number, counter: number): Promise<string> {
    return this.#limited(async () => {
      for (let attempt = 0; attempt < SAVE_ATTEMPTS; attempt += 1) {
        const name = outputFileName(tool, args, timestamp, counter)
        if (await this.#create(name, text)) return name
      }
      throw failure('create a file in', this.#path, new Error('no free name was found'))
    })
  }

  /** Reads whole files by name, in the given order. */
  load(names: readonly string[]): Promise<OutputText[]> {
    return Promise.all(names.map((name) => this.#limited(() => this.#read(name))))
  }

  /** The names of all output files, oldest first. */
  async names(): Promise<string[]> {
    return this.#files(outputNames(await this.#list(), false))
  }

  /** Removes all output files and the remains of interrupted saves. Resolves with their number. */
  async clear(): Promise<number> {
    const entries = await this.#list()
    const ours = [...outputNames(entries, false), ...outputNames(entries, true)]
    return await this.remove(await this.#files(ours))
  }

  /** Removes some files and resolves with the number of those that existed. */
  async remove(names: readonly string[]): Promise<number> {
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
    if (removed > 0) await this.#flushed()
    if (failed !== undefined) throw failed
    return removed
  }

  /** Removes some files of the local file system synchronously, for a process that is about to exit. */
  removeNow(names: readonly string[]): void {
    for (const name of names) {
      const path = join(this.#path, name)
      try {
        unlinkSync(path)
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw failure('remove', path, error)
      }
    }
  }

  /** Writes one file under a temporary name and renames it. False if the name is taken, or the directory was cleared. */
  async #create(name: string, text: string): Promise<boolean> {
    const target = join(this.#path, name)
    const temporary = join(this.#path, outputTemporaryName(name))
    try {
      if (!this.#isCreated) await this.#fs.mkdir(this.#path, { recursive: true, mode: 0o700 })
      this.#isCreated = true
      await this.#fs.writeFile(temporary, text, { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: this.#isDurable })
    } catch (error) {
      // If another process is writing this name, the name belongs to it.
      if (codeOf(error) === 'EEXIST') return false
      if (codeOf(error) === 'ENOENT' && this.#isCreated) return (this.#isCreated = false)
      await this.#discard(temporary)
      throw failure('write', target, error)
    }
    try {
      if (await this.#exists(target)) {
        await this.#discard(temporary)
        return false
      }
      await this.#fs.rename(temporary, target)
    } catch (error) {
      // Another process cleared the directory including this file, so start again.
      if (codeOf(error) === 'ENOENT') return false
      await this.#discard(temporary)
      throw failure('write', target, error)
    }
    try {
      await this.#flushed()
    } catch (error) {
      await this.#discard(target)
      throw error
    }
    return true
  }

  async #flushed(): Promise<void> {
    try {
      await this.#flush()
    } catch (error) {
      // If another process removed the directory, nothing is left to flush.
      if (codeOf(error) !== 'ENOENT') throw failure('flush', this.#path, error)
    }
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

  async #read(name: string): Promise<OutputText> {
    if (outputNames([name], false).length === 0) return { reason: "it is not an output file's name" }
    const path = join(this.#path, name)
    try {
      if (!(await this.#isFile(path))) return { reason: 'it is not a regular file' }
      return { text: await this.#fs.readFile(path, 'utf8') }
    } catch (error) {
      return { reason: reasonOf(error) }
    }
  }

  /** Removes a file that no caller knows yet; if that fails too, `clear` removes it later. */
  async #discard(path: string): Promise<void> {
    await this.#fs.unlink(path).catch(() => undefined)
  }
}

/** Lets many callers share a flush: each waits for one that began after its call. */
function sharedFlush(flush: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  const begin = async (): Promise<void> => {
    await running.catch(() => undefined)
    next = undefined
    await (running = flush())
  }
  return () => (next ??= begin())
}

function failure(action: string, path: string, error: unknown): StorageError {
  const code = codeOf(error)
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new StorageError('STORE_FULL', `no room left to ${action} ${path}: free some space and save again`, error)
  }
  const hint = 'check that the directory exists and may be written'
  return new StorageError('IO', `can't ${action} ${path}: ${reasonOf(error)}; ${hint}`, error)
}
