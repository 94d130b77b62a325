/** A secret that stays the same from start to start, so that a program's configuration continues to work. */
import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync } from 'node:fs'
import { writePrivateFile } from '../core/index.ts'
import { reasonOf, UsageError } from '../ui/index.ts'

/** Reads the secret of a file that only its owner can read, and makes it if it is missing. Throws a sentence if that is not possible. */
export function lastingSecret(path: string): string {
  try {
    return readOrMade(path)
  } catch (error) {
    throw new UsageError(`the gateway's secret can't be kept in ${path}, beside the store: ${reasonOf(error)}; name another store with --store`)
  }
}

function readOrMade(path: string): string {
  const found = readSecret(path)
  if (found !== undefined) return found
  const secret = randomBytes(18).toString('base64url')
  try {
    // Of two that start at once, the first one's counts.
    writePrivateFile(path, secret, { replace: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (readSecret(path) === undefined) writePrivateFile(path, secret)
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
