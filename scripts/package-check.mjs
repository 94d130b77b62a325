/**
 * Checks the package as it is published: its manifest and files (publint), and that its public types are those of
 * docs/api/index.api.md (API Extractor). `--write` writes that report anew, so that a change of the interface is seen in review.
 *
 * The binary of this machine must be built. Both tools come from npm, in the versions below.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packAll } from './release/pack.mjs'
import { NAME, ROOT } from './release/targets.mjs'

const PUBLINT = 'publint@0.3.25'
const API_EXTRACTOR = '@microsoft/api-extractor@7.60.1'

const work = mkdtempSync(join(tmpdir(), 'package-check-'))
try {
  const addon = readdirSync(ROOT).find((name) => name.startsWith(`${NAME}.`) && name.endsWith('.node'))
  if (addon === undefined) throw new Error('the native part is not built: npm run build')
  const tarball = packAll(ROOT, join(work, 'out'), [addon.slice(NAME.length + 1, -'.node'.length)]).at(-1)
  run(PUBLINT, 'publint', tarball, '--strict')
  execFileSync('tar', ['-xzf', tarball, '-C', work])
  run(API_EXTRACTOR, 'api-extractor', 'run', ...(process.argv.includes('--write') ? ['--local'] : []), '-c', configuration(join(work, 'package')))
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
} finally {
  rmSync(work, { recursive: true, force: true })
}

function run(tool, command, ...args) {
  execFileSync('npm', ['exec', '--yes', `--package=${tool}`, '--', command, ...args], { cwd: ROOT, stdio: 'inherit' })
}

function configuration(folder) {
  const types = { types: ['node'], typeRoots: [join(ROOT, 'node_modules', '@types')] }
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    moduleResolution: 'nodenext',
    lib: ['es2023', 'esnext.disposable'],
    skipLibCheck: true,
    ...types,
  }
  const quiet = { default: { logLevel: 'none' } }
  const path = join(folder, 'api-extractor.json')
  const reports = join(ROOT, 'docs', 'api')
  mkdirSync(reports, { recursive: true })
  writeFileSync(
    path,
    JSON.stringify({
      projectFolder: folder,
      mainEntryPointFilePath: '<projectFolder>/lib/index.d.ts',
      compiler: { overrideTsconfig: { compilerOptions } },
      apiReport: { enabled: true, reportFileName: 'index.api.md', reportFolder: reports, reportTempFolder: '<projectFolder>/temp' },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: { extractorMessageReporting: quiet, tsdocMessageReporting: quiet },
    }),
  )
  return path
}
