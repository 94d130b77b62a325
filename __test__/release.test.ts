/** Forbidden contents of a package are refused before anything is packed. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { packAll } from '../scripts/release/pack.mjs'
import { checkGlibc, glibcOf, TARGETS } from '../scripts/release/targets.mjs'
import { GLIBC } from '../lib/core/addon.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

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
  expect(refusal(artifacts).sort()).toEqual(missing.map((platform) => expect.stringMatching(`^pi-context-manager-${platform} has no binary`)))
  expect(refusal(join(artifacts, 'nowhere'), [PLATFORM])).toEqual([expect.stringContaining('has no binary')])
})

test('a platform package with the binary of another platform, or with none', () => {
  const artifacts = temporaryFolder('artifacts-')
  const other = ALL.find((platform) => platform !== PLATFORM)!
  copyFileSync(join(ROOT, FILE), join(artifacts, `pi-context-manager.${other}.node`))
  expect(refusal(artifacts, [other])).toEqual([expect.stringContaining(`is for ${PLATFORM}, not for ${other}`)])
  writeFileSync(join(artifacts, `pi-context-manager.${other}.node`), 'text')
  expect(refusal(artifacts, [other])).toEqual([expect.stringContaining('is not a binary for')])
})

test('the packages: binaries in folders of their own are found, and the main package needs them by their version', () => {
  const artifacts = temporaryFolder('artifacts-')
  mkdirSync(join(artifacts, 'bindings'))
  copyFileSync(join(ROOT, FILE), join(artifacts, 'bindings', FILE))
  const tarballs = packAll(artifacts, join(artifacts, 'out'), [PLATFORM])
  const inside = tarballs.map((path) => execFileSync('tar', ['-tzf', path], { encoding: 'utf8' }))
  expect(inside[0]).toContain(`package/${FILE}`)
  for (const name of ['LICENSE', 'THIRD-PARTY-NOTICES.txt']) expect(inside[0]).toContain(`package/${name}\n`)
  expect(inside[1]).not.toContain('.node\n')
  for (const name of [
    'index.d.ts',
    'lib/index.js',
    'lib/index.d.ts',
    'lib/cli/start.js',
    'extensions/index.js',
    'LICENSE',
    'THIRD-PARTY-NOTICES.txt',
    'README.md',
  ])
    expect(inside[1]).toContain(`package/${name}\n`)
  // One build: no sources beside what is compiled from them.
  expect(inside[1]!.split('\n').filter((name) => /^package\/(?!docs|examples).*\.ts$/.test(name) && !name.endsWith('.d.ts'))).toEqual([])
  const text = execFileSync('tar', ['-xzOf', tarballs[1]!, 'package/package.json'], { encoding: 'utf8' })
  const manifest = JSON.parse(text) as Record<string, object>
  expect(Object.keys(manifest['optionalDependencies']!).sort()).toEqual(ALL.map((platform) => `pi-context-manager-${platform}`))
  expect([manifest['devDependencies'], manifest['scripts'], manifest['workspaces']]).toEqual([undefined, undefined, undefined])
})

test('a binary that needs a newer glibc than is promised', () => {
  const path = join(temporaryFolder('glibc-'), 'pi-context-manager.linux-x64-gnu.node')
  const binary = (...versions: string[]) => writeFileSync(path, versions.map((version) => `GLIBC_${version}\0`).join('text'))
  binary('2.2.5', '2.28', '2.9')
  expect(glibcOf(path)).toBe('2.28')
  checkGlibc('linux-x64-gnu', path)
  binary('2.28', '2.29')
  expect(() => checkGlibc('linux-x64-gnu', path)).toThrow(`${path} needs glibc 2.29, and linux-x64-gnu promises ${GLIBC}`)
  binary('3.0')
  expect(() => checkGlibc('linux-x64-gnu', path)).toThrow('needs glibc 3.0')
})

test.runIf(PLATFORM.endsWith('-gnu'))('the needs of this binary are those of its dynamic symbols', () => {
  const symbols = execFileSync('objdump', ['-T', join(ROOT, FILE)], { encoding: 'utf8', maxBuffer: 1 << 26 })
  const minors = [...symbols.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor))
  expect(glibcOf(join(ROOT, FILE))).toBe(`2.${Math.max(...minors)}`)
})

test('README and docs name the glibc that the binaries are linked for', () => {
  expect([TARGETS['linux-x64-gnu']?.glibc, TARGETS['linux-arm64-gnu']?.glibc]).toEqual([GLIBC, GLIBC])
  for (const path of ['README.md', 'docs/pi.md']) {
    expect(readFileSync(join(ROOT, path), 'utf8')).toContain(`glibc ${GLIBC}`)
  }
})
