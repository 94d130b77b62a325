/** The platforms that are published, and how their binaries are told apart. */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The project's folder. */
export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** The package's name. */
export const NAME = 'pi-context-manager'

/**
 * By the name of their package's folder in `npm/`. `triple` is Rust's; `glibc` the oldest that the binary is linked for
 * (lib/core/addon.ts and README say the same).
 */
export const TARGETS = {
  'linux-x64-gnu': { triple: 'x86_64-unknown-linux-gnu', glibc: '2.28' },
  'linux-x64-musl': { triple: 'x86_64-unknown-linux-musl' },
  'linux-arm64-gnu': { triple: 'aarch64-unknown-linux-gnu', glibc: '2.28' },
  'darwin-x64': { triple: 'x86_64-apple-darwin' },
  'darwin-arm64': { triple: 'aarch64-apple-darwin' },
  'win32-x64-gnu': { triple: 'x86_64-pc-windows-gnu' },
}

/** The file of a platform's binary. */
export function addonOf(platform) {
  return `${NAME}.${platform}.node`
}

/** The newest glibc that a binary asks for, such as `2.28`; undefined where it asks for none. */
export function glibcOf(path) {
  const names = readFileSync(path, 'latin1').matchAll(/GLIBC_(\d+)\.(\d+)(?:\.\d+)?\0/g)
  const newest = [...names].map(([, major, minor]) => [Number(major), Number(minor)]).sort((a, b) => a[0] - b[0] || a[1] - b[1])
  return newest.at(-1)?.join('.')
}

/**
 * Checks what a platform's binary asks of the system's glibc.
 * @throws {Error} with a sentence, where it asks for a newer one than we say
 */
export function checkGlibc(platform, path) {
  const [allowed, needed] = [TARGETS[platform].glibc, glibcOf(path)]
  if (allowed === undefined || needed === undefined) return
  const [major, minor] = allowed.split('.').map(Number)
  const [neededMajor, neededMinor] = needed.split('.').map(Number)
  if (neededMajor > major || (neededMajor === major && neededMinor > minor)) {
    throw new Error(`${path} needs glibc ${needed}, and ${platform} promises ${allowed}: link it with scripts/release/build.mjs`)
  }
}

/** A package.json. */
export function manifestIn(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/**
 * The platform that a binary was made for, such as `linux-x64-gnu`.
 * @throws {Error} with a sentence, if it is not a shared library of a platform that is published
 */
export function platformOf(path) {
  const bytes = readFileSync(path)
  if (bytes.length > 64 && bytes.readUInt32BE(0) === 0x7f454c46) {
    const arch = { 62: 'x64', 183: 'arm64' }[bytes.readUInt16LE(18)]
    // The C library that it is linked to: glibc's libraries have versions in their names, musl's has not.
    const libc = bytes.includes('libc.so.6\0') ? 'gnu' : 'musl'
    if (arch !== undefined) return `linux-${arch}-${libc}`
  }
  if (bytes.length > 64 && bytes.readUInt32LE(0) === 0xfeedfacf) {
    const arch = { 0x01000007: 'x64', 0x0100000c: 'arm64' }[bytes.readUInt32LE(4)]
    if (arch !== undefined) return `darwin-${arch}`
  }
  if (bytes.length > 64 && bytes.readUInt16BE(0) === 0x4d5a) {
    const header = bytes.readUInt32LE(0x3c)
    const arch = header + 6 <= bytes.length && { 0x8664: 'x64', 0xaa64: 'arm64' }[bytes.readUInt16LE(header + 4)]
    // A library built by Microsoft's compiler needs its runtime library; one built by MinGW has all it needs.
    const abi = bytes.includes('VCRUNTIME140') ? 'msvc' : 'gnu'
    if (arch) return `win32-${arch}-${abi}`
  }
  throw new Error(`${path} is not a binary for ${Object.keys(TARGETS).join(', ')}`)
}
