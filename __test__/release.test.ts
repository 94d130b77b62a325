/** What must not be published is refused before anything is packed. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { packAll } from '../scripts/release/pack.mjs'
import { GLIBC } from '../lib/addon.ts'
import { cleanUp, temporaryFolder } from './rig/pi.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FILE = readdirSync(ROOT).find((name) => name.endsWith('.node'))!
const PLATFORM = FILE.slice('pi-context-manager.'.length, -'.node'.length)
const ALL = readdirSync(join(ROOT, 'npm')).sort()

afterEach(cleanUp)

function refusal(artifacts: string, platforms?: string[]): string[] {
  const out = join(temporaryFolder('packages-'), 'out')
  try {
    packAll(artifacts, out, platforms)
  } catch (error) {
    expect(existsSync(out)).toBe(false)
    return (error as Error).message.split('\n')
  }
  throw new Error('it was packed')
}

test('a platform package without its binary', () => {
  const artifacts = temporaryFolder('artifacts-')
  copyFileSync(join(ROOT, FILE), join(artifacts, FILE))
  const missing = ALL.filter((platform) => platform !== PLATFORM)
  expect(refusal(artifacts).sort()).toEqual(
    missing.map((platform) => expect.stringMatching(`^pi-context-manager-${platform} has no binary`)),
  )
  expect(refusal(join(artifacts, 'nowhere'), [PLATFORM])).toEqual([expect.stringContaining('has no binary')])
})

test('a platform package with the binary of another platform, or with none', () => {
  const artifacts = temporaryFolder('artifacts-')
  const other = ALL.find((platform) => platform !== PLATFORM)!
  copyFileSync(join(ROOT, FILE), join(artifacts, `pi-context-manager.${other}.node`))
  expect(refusal(artifacts, [other])).toEqual([expect.stringContaining(`is for ${PLATFORM}, not for ${other}`)])
  writeFileSync(join(artifacts, `pi-context-manager.${other}.node`), 'text')
  expect(refusal(artifacts, [other])).toEqual([expect.stringContaining('is no binary for')])
})

test('the packages: binaries in folders of their own are found, and the main package needs them by their version', () => {
  const artifacts = temporaryFolder('artifacts-')
  mkdirSync(join(artifacts, 'bindings'))
  copyFileSync(join(ROOT, FILE), join(artifacts, 'bindings', FILE))
  const tarballs = packAll(artifacts, join(artifacts, 'out'), [PLATFORM])
  const inside = tarballs.map((path) => execFileSync('tar', ['-tzf', path], { encoding: 'utf8' }))
  expect(inside[0]).toContain(`package/${FILE}`)
  expect(inside[1]).not.toContain('.node\n')
  for (const name of ['dist/index.js', 'dist/cli/start.js', 'extension/index.ts', 'lib/addon.ts', 'LICENSE', 'README.md'])
    expect(inside[1]).toContain(`package/${name}\n`)
  const text = execFileSync('tar', ['-xzOf', tarballs[1]!, 'package/package.json'], { encoding: 'utf8' })
  const manifest = JSON.parse(text) as Record<string, object>
  expect(Object.keys(manifest['optionalDependencies']!).sort()).toEqual(
    ALL.map((platform) => `pi-context-manager-${platform}`),
  )
  expect([manifest['devDependencies'], manifest['scripts'], manifest['workspaces']]).toEqual([undefined, undefined, undefined])
})

test('README and docs name the glibc that the binaries are linked for', () => {
  for (const path of ['README.md', 'docs/pi.md']) {
    expect(readFileSync(join(ROOT, path), 'utf8')).toContain(`glibc ${GLIBC}`)
  }
})
