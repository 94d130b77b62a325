/** Agents from the registry, installed as programs into a folder of this machine's temporary ones. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { binary as opencode } from '../hosts/opencode.ts'

/** The programs that may be installed, by their names: `1` or `long` for all of them. */
const ASKED = process.env['CONTEXT_PROGRAMS'] ?? ''

/** True if each of them runs for minutes. */
export const INSTALLS_LONG = ASKED === 'long'

/** The folder where installed programs stay for the next run. */
export const FOLDER = join(tmpdir(), 'pi-context-programs')

/** A program: its file, what comes before its arguments, and its version. */
export interface Installed {
  command: string
  args: string[]
  version: string
}

/** Packages and, below `node_modules`, the files to run: binaries, or scripts for Node. */
const PROGRAMS = {
  claude: { name: '@anthropic-ai/claude-code', file: `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude` },
  cline: { name: 'cline', file: `@cline/cli-${process.platform}-${process.arch}/bin/cline` },
  codex: {
    name: '@openai/codex',
    file: `@openai/codex-${process.platform}-${process.arch}/vendor/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-unknown-linux-musl/bin/codex`,
  },
  continue: { name: '@continuedev/cli', file: '@continuedev/cli/dist/cn.js' },
  copilot: { name: '@github/copilot', file: `@github/copilot-${process.platform}-${process.arch}/copilot` },
  gemini: { name: '@google/gemini-cli', file: '@google/gemini-cli/bundle/gemini.js' },
  kilo: { name: `@kilocode/cli-${process.platform}-${process.arch}`, file: `@kilocode/cli-${process.platform}-${process.arch}/bin/kilo` },
  kimi: { name: '@moonshot-ai/kimi-code', file: '@moonshot-ai/kimi-code/dist/main.mjs' },
  qwen: { name: '@qwen-code/qwen-code', file: '@qwen-code/qwen-code/cli.js' },
} as const

/** The name of a program that the tests start. */
export type ProgramName = keyof typeof PROGRAMS | 'opencode'

/** A program, installed if need be; undefined where it can't be had, and a line says why. */
export function installed(name: ProgramName): Installed | undefined {
  if (!INSTALLS_LONG && ASKED !== '1' && !ASKED.split(',').includes(name)) return skip(name, 'npm run test:gateway installs and runs it')
  if (name === 'opencode') return opencode === undefined ? undefined : { command: opencode, args: [], version: versionIn(join(opencode, '..', '..')) }
  const { name: package_, file } = PROGRAMS[name]
  const folder = join(FOLDER, name)
  const path = join(folder, 'node_modules', file)
  if (!existsSync(path)) {
    try {
      installInto(folder, `${package_}@latest`)
    } catch (error) {
      return skip(name, String((error as { stderr?: unknown }).stderr ?? error).slice(0, 200))
    }
    if (!existsSync(path)) return skip(name, `the package has no ${file} for this machine`)
  }
  const version = versionIn(join(folder, 'node_modules', package_))
  return /\.m?js$/.test(path) ? { command: findRuntime().node, args: [path], version } : { command: path, args: [], version }
}

/** The routers that the gateway is tested beside. */
export type RouterName = 'claude-code-router' | 'litellm'

/** A router's program, installed if need be; undefined where it can't be had, and a line says why. */
export function installedRouter(name: RouterName): string | undefined {
  if (!INSTALLS_LONG && ASKED !== '1' && !ASKED.split(',').includes(name)) return skip(name, 'npm run test:gateway installs and runs it')
  const folder = join(FOLDER, name)
  const path = name === 'litellm' ? join(folder, 'bin', 'litellm') : join(folder, 'node_modules', '@musistudio/claude-code-router/dist/cli.js')
  try {
    if (!existsSync(path) && name === 'litellm') {
      execFileSync('python3', ['-m', 'venv', folder], { stdio: 'pipe' })
      execFileSync(join(folder, 'bin', 'pip'), ['install', '--quiet', 'litellm[proxy]'], { stdio: 'pipe', timeout: 900_000 })
    } else if (!existsSync(path)) {
      // Newer versions need packages that are not in every registry.
      installInto(folder, '@musistudio/claude-code-router@2.0.0')
    }
    return path
  } catch (error) {
    return skip(name, String((error as { stderr?: unknown }).stderr ?? error).slice(0, 200))
  }
}

/** Installs a package of the registry into its own folder, without running its scripts. */
export function installInto(folder: string, spec: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{}')
  const flags = ['--ignore-scripts', '--legacy-peer-deps', '--omit=peer', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', spec, ...flags], { cwd: folder, stdio: 'pipe', timeout: 300_000 })
}

function versionIn(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version
}

function skip(name: string, why: string): undefined {
  process.stderr.write(`skipped: ${name} (${why})\n`)
  return undefined
}
