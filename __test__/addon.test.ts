/** The addon is found wherever it is installed; an installation without a usable one fails with one sentence. */
import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { loadAddon } from '../lib/core/addon.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FILE = readdirSync(ROOT).find((name) => name.endsWith('.node'))!
const PLATFORM = FILE.slice('pi-context-manager.'.length, -'.node'.length)
const KEY = `${process.platform}-${process.arch}`

afterEach(cleanUp)

/** A package folder below `node_modules`, and the folder of the platform package beside it. */
function installation(version = '1.0.0'): { root: string; platform: string } {
  // Windows removes no library that a process has loaded.
  const folder = process.platform === 'win32' ? mkdtempSync(join(tmpdir(), 'addon-')) : temporaryFolder('addon-')
  const root = join(folder, 'node_modules', 'pi-context-manager')
  const platform = join(folder, 'node_modules', `pi-context-manager-${PLATFORM}`)
  for (const path of [root, platform]) mkdirSync(path, { recursive: true })
  writeFileSync(join(root, 'package.json'), '{ "version": "1.0.0" }')
  writeFileSync(join(platform, 'package.json'), JSON.stringify({ version }))
  return { root, platform }
}

/** The sentence that an installation gives instead of the addon. */
function sentenceOf(root: string, machine?: { platform: string; arch: string; libc?: 'gnu' | 'musl' }): string {
  try {
    loadAddon(root, machine)
  } catch (error) {
    expect((error as { code: string }).code).toBe('IO')
    expect((error as Error).message).not.toContain('\n')
    return (error as Error).message
  }
  throw new Error('it was loaded')
}

describe('found', () => {
  test('in a checkout, and in the platform package beside', () => {
    const own = loadAddon(ROOT)
    expect(typeof own.ContextManager.prototype.start).toBe('function')
    const { root, platform } = installation()
    copyFileSync(join(ROOT, FILE), join(platform, FILE))
    expect(Object.keys(loadAddon(root))).toEqual(Object.keys(own))
  })

  test('above, where packages are hoisted, and through a symbolic link', () => {
    const { root, platform } = installation()
    copyFileSync(join(ROOT, FILE), join(platform, FILE))
    const inner = join(root, 'node_modules', 'pi-context-manager')
    mkdirSync(inner, { recursive: true })
    expect(typeof loadAddon(inner).ContextManager).toBe('function')
    const link = join(temporaryFolder('link-'), 'linked')
    symlinkSync(root, link, 'junction')
    expect(typeof loadAddon(link).ContextManager).toBe('function')
  })
})

describe('one sentence', () => {
  test.each([
    ['freebsd', 'x64'],
    ['win32', 'arm64'],
    ['linux', 'riscv64'],
  ])('for %s-%s, which has no build', (platform, arch) => {
    expect(sentenceOf(ROOT, { platform, arch })).toMatch(
      new RegExp(`^pi-context-manager has no prebuilt addon for ${platform}-${arch}; it supports Linux .*macOS`),
    )
  })

  test('where optional dependencies were left out', () => {
    const folder = temporaryFolder('addon-')
    expect(sentenceOf(folder)).toMatch(new RegExp(`^the native addon of pi-context-manager for ${KEY} is missing because .*npm install --include=optional`))
  })

  test('where the platform package is another version', () => {
    const { root, platform } = installation('0.9.0')
    copyFileSync(join(ROOT, FILE), join(platform, FILE))
    expect(sentenceOf(root)).toMatch(/is version 0\.9\.0, but pi-context-manager is 1\.0\.0; reinstall/)
  })

  test.each<['gnu' | 'musl', string, string, string]>([
    [
      'gnu',
      'musl',
      'x64',
      'pi-context-manager-linux-x64-gnu is not installed, only the one for musl, and this machine has glibc; run "npm install pi-context-manager-linux-x64-gnu@1.0.0"',
    ],
    [
      'musl',
      'gnu',
      'x64',
      'pi-context-manager-linux-x64-musl is not installed, only the one for glibc, and this machine has musl; run "npm install pi-context-manager-linux-x64-musl@1.0.0"',
    ],
    ['musl', 'gnu', 'arm64', 'pi-context-manager has no prebuilt addon for linux-arm64 with musl, only the one for glibc'],
  ])('for %s where only the package for %s is installed, on %s', (libc, installed, arch, sentence) => {
    const { root } = installation()
    const other = join(root, '..', `pi-context-manager-linux-${arch}-${installed}`)
    mkdirSync(other, { recursive: true })
    writeFileSync(join(other, 'package.json'), '{ "version": "1.0.0" }')
    // Whatever the loader says of it.
    writeFileSync(join(other, `pi-context-manager.linux-${arch}-${installed}.node`), 'for another C library')
    expect(sentenceOf(root, { platform: 'linux', arch, libc })).toContain(sentence)
  })

  test('for musl where its own package is damaged, and the one for glibc is installed, too', () => {
    const { root } = installation()
    for (const libc of ['gnu', 'musl']) {
      const folder = join(root, '..', `pi-context-manager-linux-x64-${libc}`)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'package.json'), '{ "version": "1.0.0" }')
      writeFileSync(join(folder, `pi-context-manager.linux-x64-${libc}.node`), 'damaged')
    }
    expect(sentenceOf(root, { platform: 'linux', arch: 'x64', libc: 'musl' })).toMatch(/x64-musl\.node is damaged/)
  })

  test.runIf(process.platform === 'linux').each<[string, (bytes: Buffer) => Buffer, RegExp]>([
    ['a text', () => Buffer.from('not a binary'), /built for another machine than linux-.*delete node_modules/],
    ['half a file', (bytes) => bytes.subarray(0, 100), /built for another machine than linux-/],
    [
      'a binary for another architecture',
      (bytes) => {
        bytes.writeUInt16LE(bytes.readUInt16LE(18) === 183 ? 62 : 183, 18)
        return bytes
      },
      /built for another machine than linux-/,
    ],
    [
      'a binary for a newer glibc',
      (bytes) => {
        const text = bytes.toString('latin1')
        const name = /GLIBC_2\.\d\d(?=\0)/g
        const newest = text.match(name)!.sort().at(-1)!
        return Buffer.from(text.replaceAll(newest, 'GLIBC_9.99'), 'latin1')
      },
      /needs glibc 9\.99 or newer, but this system \(linux-\w+\) has glibc 2\.\d+; use a newer system/,
    ],
  ])('for %s', (_name, change, sentence) => {
    const { root, platform } = installation()
    writeFileSync(join(platform, FILE), change(readFileSync(join(ROOT, FILE))))
    expect(sentenceOf(root)).toMatch(sentence)
  })

  test('from the command line, without a stack', async () => {
    const folder = temporaryFolder('addon-')
    for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
    const failed = await execute(process.execPath, [join(folder, 'dist', 'cli', 'start.js'), 'doctor']).catch(
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
    expect(failed).toMatchObject({ code: 2, stdout: '' })
    expect(failed.stderr).toMatch(/^pi-context-manager: the native addon of pi-context-manager for .* is missing [^\n]*\n$/)
  })
})

/** Two copies of the package in one process, as a dependency may bring one; each has a version. Returns what the script prints. */
async function withTwoCopies(versions: readonly [string, string], script: string): Promise<string> {
  const folder = temporaryFolder('copies-')
  const copies = versions.map((version, number) => {
    const copy = join(folder, String(number), 'node_modules', 'pi-context-manager')
    cpSync(join(ROOT, 'dist'), join(copy, 'dist'), { recursive: true })
    writeFileSync(join(copy, 'package.json'), JSON.stringify({ type: 'module', version }))
    symlinkSync(join(ROOT, FILE), join(copy, FILE))
    return pathToFileURL(join(copy, 'dist', 'index.js')).href
  })
  const code = `const [one, other] = ${JSON.stringify(copies)}; const cwd = ${JSON.stringify(folder)}; ${script}`
  const { stdout } = await execute(process.execPath, ['--input-type=module', '-e', code])
  return stdout.trim()
}

describe('two copies in one process', () => {
  test('with one version share a session, and what is withheld in it', async () => {
    const said = await withTwoCopies(
      ['1.0.0', '1.0.0'],
      `
      const { ContextManager } = await import(one)
      const { Projection } = await import(other)
      const manager = await ContextManager.open({ sessionId: 's', cwd, store: { kind: 'memory' }, watch: false })
      const projection = new Projection(manager, { shape: 'openai-chat' })
      const call = (id, content) => [{ role: 'assistant', content: '', tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: '{}' } }] }, { role: 'tool', tool_call_id: id, content }]
      await projection.transform([{ role: 'user', content: 'go' }, ...call('c1', 'a secret'), ...call('c2', 'more')])
      await projection.transform([{ role: 'user', content: 'go' }, ...call('c1', 'redacted'), ...call('c2', 'more')])
      const back = await manager.activate('c1')
      const second = await new Projection(manager, {}).transform([]).catch(({ message }) => message)
      console.log(back.content ?? back.code, '|', second)
      await manager.close()`,
    )
    expect(said).not.toContain('a secret')
  })

  test('with two versions: the second is refused in one sentence', async () => {
    const said = await withTwoCopies(['1.0.0', '2.0.0'], `await import(one); await import(other).catch(({ code, message }) => console.log(code, message))`)
    expect(said).toMatch(/^IO this process has already loaded pi-context-manager 1\.0\.0, and .* is version 2\.0\.0; "npm ls pi-context-manager"/)
    expect(said).not.toContain('\n')
  })
})

test('a copy that is updated on the disk keeps the addon that it has loaded', async () => {
  const said = await withTwoCopies(
    ['1.0.0', '1.0.0'],
    `
    const { writeFileSync } = await import('node:fs')
    const { sharedAddon } = await import(new URL('core/index.js', one))
    const before = sharedAddon()
    writeFileSync(new URL('../package.json', one), JSON.stringify({ type: 'module', version: '2.0.0' }))
    console.log(sharedAddon() === before)`,
  )
  expect(said).toBe('true')
})
