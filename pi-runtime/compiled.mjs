/**
 * Pi as one binary, as its makers build it: Bun's compiler on Pi's own entry, with Pi's assets beside it. Where the
 * packages that the entry imports are not on the registry, on the bundle of the same Pi, whose loader of extensions then
 * has to be told to take the jiti that is compiled in.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { bun, KEPT } from './packages.mjs'

/** What Pi's script `copy-binary-assets` puts beside the binary, by its place in the package. */
const ASSETS = [
  ['package.json', 'package.json'],
  ['README.md', 'README.md'],
  ['CHANGELOG.md', 'CHANGELOG.md'],
  ['docs', 'docs'],
  ['dist/modes/interactive/theme', 'theme'],
  ['dist/modes/interactive/assets', 'assets'],
  ['dist/core/export-html', 'export-html'],
]

/** Pi's entry and the workers that it starts by their files; of the newer ones there are more. */
const ENTRIES = ['dist/bun/cli.js', 'dist/utils/image-resize-worker.js', 'dist/extensions/codemode/worker.js']

/**
 * The binary that is made of a Pi package; made where it is not there yet, which takes some seconds.
 * @param {string} root the package's folder
 * @param {string} version its version
 * @param {boolean} complete whether all that its entry imports is installed with it
 * @returns {string} absolute path
 * @throws {Error} with what Bun says, where it can't be compiled
 */
export function compiledPi(root, version, complete) {
  const folder = join(KEPT, `compiled-${version}-${process.platform}-${process.arch}`)
  const binary = join(folder, process.platform === 'win32' ? 'pi.exe' : 'pi')
  if (existsSync(binary)) return binary
  mkdirSync(KEPT, { recursive: true })
  const work = mkdtempSync(join(KEPT, 'compile-'))
  try {
    if (complete) compile(root, entries(root), join(work, 'pi'))
    else compileBundle(root, join(work, 'pi'))
    for (const [from, to] of ASSETS) {
      if (existsSync(join(root, from))) cpSync(join(root, from), join(work, to), { recursive: true })
    }
    const photon = createRequire(join(root, 'package.json')).resolve('@silvia-odwyer/photon-node')
    cpSync(join(dirname(photon), 'photon_rs_bg.wasm'), join(work, 'photon_rs_bg.wasm'))
    renameSync(work, folder)
  } catch (error) {
    rmSync(work, { recursive: true, force: true })
    if (!existsSync(binary)) throw error
  }
  return binary
}

function entries(root) {
  return ENTRIES.filter((path) => existsSync(join(root, path)))
}

/** A copy beside the package, so that the same `node_modules` are found. */
function compileBundle(root, outfile) {
  const copy = mkdtempSync(join(dirname(root), 'bundle-'))
  try {
    cpSync(join(root, 'dist', 'bundle'), copy, { recursive: true })
    const chunks = join(copy, 'chunks')
    const loader = readdirSync(chunks).find((name) => /^jiti-static-loader-.*\.js$/.test(name))
    if (loader === undefined) throw new Error(`the Pi in ${root} is bundled in another way than the one that was tried`)
    writeFileSync(join(chunks, loader), "export { createJiti } from 'jiti/static'\n")
    compile(copy, ['cli-runtime.js'], outfile)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** Packages that a bundle names and can do without. */
const ABSENT = ['@aws-sdk/signature-v4-crt', 'kerberos']

function compile(cwd, paths, outfile) {
  const args = ['build', '--compile', '--no-compile-autoload-bunfig', ...ABSENT.flatMap((name) => ['--external', name])]
  try {
    execFileSync(bun(), [...args, ...paths.map((path) => `./${path}`), '--outfile', outfile], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    throw new Error(`Bun can't compile the Pi in ${cwd}: ${String(error.stderr ?? error.message).trim().slice(-2000)}`)
  }
}
