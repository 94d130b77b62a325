/**
 * Finds and loads the native addon, or says in one message why it can't. The generated `index.js` resolves the
 * platform package by name, which fails inside a compiled host, and blames npm if the package is missing. This file
 * looks for the addon by absolute path, starting from its own place.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type * as addon from '../../index.js'
import { realOf } from './paths.ts'

/** The native addon, as the generated `index.js` exports it. */
export type Addon = typeof addon

/** The oldest glibc that the published binaries support; Node 22 needs the same one. */
export const GLIBC = '2.28'

const NAME = 'pi-context-manager'

/** The platform and architecture of a machine, which decide which binary fits it. */
interface Machine {
  platform: string
  arch: string
  /** The C library on Linux; found out if it is left out. */
  libc?: Libc
}

type Libc = 'gnu' | 'musl'

/** The published binaries by platform and architecture, the most likely one first. */
const BINARIES: Record<string, readonly string[]> = {
  'linux-x64': ['linux-x64-gnu', 'linux-x64-musl'],
  'linux-arm64': ['linux-arm64-gnu'],
  'darwin-x64': ['darwin-x64'],
  'darwin-arm64': ['darwin-arm64'],
  'win32-x64': ['win32-x64-gnu'],
}

/** The addon is missing or does not fit this machine. The message says what to do. */
class AddonError extends Error {
  readonly code = 'IO'

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'AddonError'
  }
}

/**
 * Loads the addon for this machine. `root` is the package's folder.
 *
 * Throws {@link AddonError}.
 */
export function loadAddon(root = packageRoot(), machine: Machine = process): Addon {
  const key = `${machine.platform}-${machine.arch}`
  const names = BINARIES[key]
  if (names === undefined) {
    throw new AddonError(
      `${NAME} has no prebuilt addon for ${key}; it supports Linux (x64 with glibc ${GLIBC} or newer or with musl, ` +
        `arm64 with glibc ${GLIBC} or newer), macOS (x64, arm64) and Windows (x64)`,
    )
  }
  const require = createRequire(import.meta.url)
  let failure: AddonError | undefined
  let wrong: AddonError | undefined
  for (const name of names) {
    for (const { path, version } of places(root, name)) {
      if (!existsSync(path)) continue
      const wanted = versionIn(root)
      if (version !== undefined && wanted !== undefined && version !== wanted) {
        failure ??= new AddonError(`${NAME}-${name} is version ${version}, but ${NAME} is ${wanted}; reinstall ${NAME}@${wanted}`)
        continue
      }
      try {
        return require(path) as Addon
      } catch (error) {
        const message = machine.platform === 'linux' ? wrongLibc(names, name, machine, wanted) : undefined
        if (message !== undefined) wrong ??= new AddonError(message, error)
        else failure ??= new AddonError(unfit(path, key, String((error as Error).message)), error)
      }
    }
  }
  throw (
    failure ??
    wrong ??
    new AddonError(
      `the native addon of ${NAME} for ${key} is missing because the optional package ` +
        `${names.map((name) => `${NAME}-${name}`).join(' or ')} is not installed; reinstall with ` +
        `"npm install --include=optional ${NAME}", or run "npm run build" in a checkout; if a bundler has put the package into one ` +
        `file, name it as external (esbuild: --external:${NAME})`,
    )
  )
}

const KEY = Symbol.for('pi-context-manager.native')
const VERSION = Symbol.for('pi-context-manager.version')

/** The addon once this copy of the package has asked for it: its version is compared once, and reading it takes longer than most calls. */
let ofThisCopy: Addon | undefined

/**
 * The addon that this process uses, loaded once. Two copies of the package in one process would open the same SQLite
 * file with two copies of SQLite, and closing one would drop the other's POSIX locks. So the first copy serves all.
 *
 * Throws {@link AddonError}, also if the addon that is loaded is that of another version.
 */
export function sharedAddon(): Addon {
  return (ofThisCopy ??= addonFor(packageRoot()))
}

function addonFor(root: string): Addon {
  const shared = globalThis as { [KEY]?: Addon; [VERSION]?: string | undefined }
  const named = process.env['NAPI_RS_NATIVE_LIBRARY_PATH']
  const [own, loaded] = [versionIn(root), shared[VERSION]]
  if (shared[KEY] === undefined) {
    shared[KEY] = named === undefined ? loadAddon(root) : namedAddon(named)
    shared[VERSION] = own
  } else if (own !== undefined && loaded !== undefined && own !== loaded) {
    throw new AddonError(
      `this process has already loaded ${NAME} ${loaded}, and ${root} is version ${own}; "npm ls ${NAME}" shows who needs which: ` +
        'install one version for all of them, or use the other one in another process',
    )
  }
  return shared[KEY]
}

/** The addon named by the user in the environment, as for napi's own loaders. */
function namedAddon(path: string): Addon {
  try {
    return createRequire(import.meta.url)(path) as Addon
  } catch (error) {
    throw new AddonError(`NAPI_RS_NATIVE_LIBRARY_PATH names ${path}, which can't be loaded as the addon of ${NAME}; unset it`, error)
  }
}

/** The folder that this file is installed in: its `lib` or `dist` has it in `core`. */
function packageRoot(): string {
  return dirname(dirname(dirname(fileURLToPath(import.meta.url))))
}

/** The possible places of a binary: in the checkout, or in its own package next to or above this one. */
function* places(root: string, name: string): Generator<{ path: string; version?: string | undefined }> {
  const file = `${NAME}.${name}.node`
  yield { path: join(root, file) }
  for (const start of new Set([root, realOf(root)])) {
    for (let folder = start; ; folder = dirname(folder)) {
      const found = join(folder, 'node_modules', `${NAME}-${name}`)
      if (existsSync(found)) yield { path: join(found, file), version: versionIn(found) }
      if (dirname(folder) === folder) break
    }
  }
}

function versionIn(folder: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version?: string }).version
  } catch {
    return undefined
  }
}

/**
 * Says which package fits if the one that does not load is for another C library: a lock file that was written elsewhere, or
 * without the field "libc", installs it again and again. `undefined` if it is for this machine's.
 */
function wrongLibc(names: readonly string[], name: string, machine: Machine, version: string | undefined): string | undefined {
  const libc = machine.libc ?? libcHere()
  if (name.endsWith(`-${libc}`)) return undefined
  const fitting = `${machine.platform}-${machine.arch}-${libc}`
  const has = `only the one for ${LIBCS[libc === 'gnu' ? 'musl' : 'gnu']}`
  if (!names.includes(fitting)) {
    return `${NAME} has no prebuilt addon for ${machine.platform}-${machine.arch} with ${LIBCS[libc]}, ${has}; run "npm run build" in a checkout`
  }
  const named = `${NAME}-${fitting}${version === undefined ? '' : `@${version}`}`
  return (
    `${NAME}-${fitting} is not installed, ${has}, and this machine has ${LIBCS[libc]}; run "npm install ${named}" (a lock file ` +
    'that was written for another C library installs the wrong package again)'
  )
}

const LIBCS: Record<Libc, string> = { gnu: 'glibc', musl: 'musl' }

function libcHere(): Libc {
  return reported() === undefined ? 'musl' : 'gnu'
}

/** Why an existing binary does not load. */
function unfit(path: string, key: string, message: string): string {
  const glibc = /GLIBC_([\d.]+)' not found/.exec(message)?.[1]
  if (glibc !== undefined) {
    return (
      `${path} needs glibc ${glibc} or newer, but this system (${key}) has ${glibcHere()}; use a newer system, or build ` +
      'from source ("npm run build" in a checkout)'
    )
  }
  // The file exists, so a loader that can't open it rejects its architecture.
  const isOther = message.startsWith(`${path}: cannot `)
  if (isOther || /invalid ELF|wrong ELF|file too short|exec format|mach-o|incompatible architecture|not a valid/i.test(message)) {
    return `${path} is damaged or was built for another machine than ${key}; delete node_modules and reinstall on this machine`
  }
  return `${path} can't be loaded on ${key} (${message.split('\n')[0]}); reinstall ${NAME}`
}

function glibcHere(): string {
  const version = reported()
  return version === undefined ? 'a different C library' : `glibc ${version}`
}

/** The version of glibc that this process runs with; `undefined` with another C library. */
function reported(): string | undefined {
  const { header } = (process.report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } }
  return header?.glibcVersionRuntime
}
