/** The repository that the demo works on: a copy of this checkout's own files, so that nothing here changes. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** This checkout. */
const CHECKOUT: string = realpathSync(fileURLToPath(new URL('..', import.meta.url)))

/** Built or installed, so no part of the repository where git does not tell. */
const NOT_SOURCE = new Set(['.git', 'node_modules', 'target', 'dist', '.demo'])

/** A file this large is data that an agent would not look at. */
const LARGEST_BYTES = 2_000_000

/**
 * The repository's files, as paths relative to the checkout with forward slashes, sorted: those that git tracks, or,
 * without git, everything but what was built or installed.
 */
export function repositoryFiles(): string[] {
  return (trackedFiles() ?? walk(''))
    .filter((path) => {
      const stat = lstatSync(join(CHECKOUT, path), { throwIfNoEntry: false })
      return stat?.isFile() === true && stat.size <= LARGEST_BYTES
    })
    .sort()
}

/** Copies files of the checkout below `target`. */
export function copyRepository(files: readonly string[], target: string): void {
  for (const path of files) {
    const to = join(target, path)
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(join(CHECKOUT, path), to)
  }
}

/** Source files that are worth reading: text of 2 to 24 kB, the largest first, at most `count`. */
export function filesToRead(files: readonly string[], count: number): string[] {
  return files
    .filter((path) => /\.(rs|ts|mts|mjs|md|toml|ya?ml)$/.test(path))
    .map((path) => ({ path, bytes: readFileSync(join(CHECKOUT, path)) }))
    .filter(({ bytes }) => bytes.length >= 2_000 && bytes.length <= 24_000 && !bytes.includes(0))
    .sort((left, right) => right.bytes.length - left.bytes.length || (left.path < right.path ? -1 : 1))
    .slice(0, count)
    .map((file) => file.path)
}

/** Returns the files that git tracks, or undefined if this checkout is not its own git repository, or git is missing. */
function trackedFiles(): string[] | undefined {
  const git = (...args: string[]): string =>
    execFileSync('git', args, {
      cwd: CHECKOUT,
      encoding: 'utf8',
      maxBuffer: 64 << 20,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  try {
    if (realpathSync(git('rev-parse', '--show-toplevel').trim()) !== CHECKOUT) return undefined
    return git('ls-files', '-z').split('\0').filter(Boolean)
  } catch {
    return undefined
  }
}

function walk(folder: string): string[] {
  return readdirSync(join(CHECKOUT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return NOT_SOURCE.has(entry.name) ? [] : walk(path)
    return entry.isFile() && !entry.name.endsWith('.node') ? [path] : []
  })
}
