/**
 * The tests of the extension on several kinds of Pi: `node scripts/pi-suite.mjs [--full] [KIND...] [TEST...]`. A kind is
 * `VERSION/BUILD/FROM`: `installed` (the Pi that npm installed, the oldest that is supported) or `newest`; `node` or
 * `compiled`; `checkout` or `package`. Without one all eight run. A test is the name of a file of `__test__/pi`, such as
 * `tools`; without one it is the fast part of the suite, with `--full` all of it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findNode } from '../pi-runtime/index.mjs'
import { installHere } from './release/install.mjs'
import { ROOT } from './release/targets.mjs'

/** The suites that depend on the version or the build of Pi, and one of everything else. */
const FAST = ['transcript', 'tools', 'nested', 'record', 'arguments', 'routed']

const arguments_ = process.argv.slice(2)
const named = arguments_.filter((word) => word !== '--full')
const tests = named.filter((word) => !word.includes('/'))
const files = arguments_.includes('--full') ? ['__test__/pi'] : (tests.length > 0 ? tests : FAST).map((name) => `__test__/pi/${name}.test.ts`)
const chosen = named.filter((word) => word.includes('/'))
const kinds = chosen.length > 0 ? chosen : every(['installed', 'newest'], ['node', 'compiled'], ['checkout', 'package'])
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'pi-suite-'))
const table = []
try {
  const isPackage = (kind) => kind.endsWith('/package')
  const project = kinds.some(isPackage) ? await installHere(folder) : undefined
  for (const kind of kinds) table.push([kind, run(kind, isPackage(kind) ? project : undefined)])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.stdout.write(`\n${table.map(([kind, outcome]) => `${kind.padEnd(30)} ${outcome}`).join('\n')}\n`)
process.exitCode = table.every(([, outcome]) => outcome.startsWith('passed')) ? 0 : 1

function run(kind, project) {
  const [version, build] = kind.split('/')
  const env = { ...process.env, PI_VERSION: version, PI_COMPILED: build === 'compiled' ? '1' : '0', NO_COLOR: '1' }
  if (project !== undefined) {
    env.CONTEXT_EXTENSION = join(project, 'node_modules', 'pi-context-manager', 'extensions', 'index.ts')
  }
  process.stdout.write(`\n== ${kind}\n`)
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs')
  const started = Date.now()
  const { status, stdout } = spawnSync(findNode(), [vitest, 'run', ...files], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 30,
  })
  process.stdout.write(stdout)
  const tests = /^\s*Tests\s+(.*)$/m.exec(stdout)?.[1] ?? 'no tests'
  return `${status === 0 ? 'passed' : 'FAILED'}: ${tests}, ${Math.round((Date.now() - started) / 1000)} s`
}

function every(...lists) {
  return lists.reduce((found, list) => found.flatMap((one) => list.map((word) => (one === '' ? word : `${one}/${word}`))), [''])
}
