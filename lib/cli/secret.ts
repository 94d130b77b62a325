/** A secret that stays the same from start to start, so that a program's configuration goes on working. */
import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Reads the secret of a file that only its owner can read, and makes it if it is missing. Throws what the file system says. */
export function lastingSecret(path: string): string {
  const found = readSecret(path)
  if (found !== undefined) return found
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const part = `${path}.${process.pid}.part`
  writeFileSync(part, randomBytes(18).toString('base64url'), { mode: 0o600 })
  try {
    // Of two that start at once, the first one's counts.
    linkSync(part, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (readSecret(path) === undefined) writeFileSync(path, readFileSync(part), { mode: 0o600 })
  } finally {
    rmSync(part, { force: true })
  }
  return readSecret(path) as string
}

/** Undefined if there is none, or none that could be ours. */
function readSecret(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim()
    if (!/^[\w-]{24}$/.test(text)) return undefined
    // A copy or an editor may have opened it to others.
    chmodSync(path, 0o600)
    return text
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
