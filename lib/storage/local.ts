/** The local file system as the storage class uses it: links are not followed, and new directories are durable. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { IFileSystem } from './types.ts'

/** A link may lead anywhere, and opening a pipe may wait for ever. Windows has neither flag. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** The file system of this machine. With `isDurable`, a directory that it creates survives a power failure. */
export function localFileSystem(isDurable: boolean): IFileSystem {
  return {
    writeFile,
    readdir,
    rename,
    unlink,
    stat: lstat,
    readFile: readRegularFile,
    async mkdir(path, options) {
      const first = await mkdir(path, options)
      if (!isDurable || first === undefined) return
      for (let created = path; ; created = dirname(created)) {
        await syncDirectory(dirname(created))
        if (created === first || created === dirname(created)) return
      }
    },
  }
}

/** Makes the entries of a directory survive a power failure. Windows does so by itself. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function readRegularFile(path: string): Promise<string> {
  const file = await open(path, READ)
  try {
    if (!(await file.stat()).isFile()) throw new Error('it is not a regular file')
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.readFile())
  } finally {
    await file.close()
  }
}
