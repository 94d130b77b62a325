/**
 * Builds what the demo needs, if it is missing or older than its sources. The addon is built as the tests have it: from nothing that
 * takes half as long as an optimized one, which saves the demo a few seconds.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The builds, by npm script: the files that come from each, and their sources. */
const STEPS = [
  { script: 'build:dev', built: () => files('.', (name) => name.endsWith('.node'), 1), sources: ['crates', 'src', 'Cargo.toml', 'Cargo.lock', 'build.rs'] },
  { script: 'build:ts', built: () => files('dist', (name) => name.endsWith('.js')), sources: ['lib', 'index.d.ts', 'tsconfig.build.json'] },
]

for (const { script, built, sources } of STEPS) {
  const times = built().map(timeOf)
  const newest = Math.max(...sources.flatMap((source) => files(source, () => true)).map(timeOf))
  if (times.length > 0 && Math.max(...times) >= newest) continue
  const { status } = spawnSync('npm', ['run', script], { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
  if (status !== 0) process.exit(status ?? 1)
}

/** The files at and below a path, down to a depth. */
function files(path, isWanted, depth = 99) {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  if (found === undefined) return []
  if (!found.isDirectory()) return isWanted(path) ? [path] : []
  if (depth === 0) return []
  return readdirSync(join(root, path)).flatMap((name) => files(join(path, name), isWanted, depth - 1))
}

function timeOf(path) {
  return statSync(join(root, path)).mtimeMs
}
