/**
 * Pi as one binary, as its makers build it: Bun's compiler on Pi's own entry, with Pi's assets beside it. Where the
 * packages that the entry imports are not on the registry, on the bundle of the same Pi, which then has to be told to take
 * the jiti, the workers and the QuickJS that are compiled in.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bun, KEPT } from './packages.mjs'

/** The files that Pi's script `copy-binary-assets` puts beside the binary, by their place in the package. */
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

/** The hash of this file: a binary that was built in another way does not count. */
const RECIPE = createHash('sha256')
  .update(readFileSync(fileURLToPath(import.meta.url)))
  .digest('hex')
  .slice(0, 8)

/**
 * The binary that is made of a Pi package; made where it is not there yet, which takes some seconds.
 * @param {string} root the package's folder
 * @param {string} version its version
 * @param {boolean} complete whether all that its entry imports is installed with it
 * @returns {string} absolute path
 * @throws {Error} with what Bun says, where it can't be compiled
 */
export function compiledPi(root, version, complete) {
  const folder = join(KEPT, `compiled-${version}-${process.platform}-${process.arch}-${RECIPE}`)
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

/** The workers that a compiled Pi starts by the names of their sources, and what they are in the bundle. */
const BUNDLED_WORKERS = {
  'src/utils/image-resize-worker.ts': 'image-resize-worker.js',
  'src/extensions/codemode/worker.ts': 'codemode-worker.js',
}

/** The bundle's search for QuickJS, on a disk where a compiled Pi has none. */
const QUICKJS_ON_DISK = 'quickJSWasmPath??=createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm")'

/** A copy beside the package, so that the same `node_modules` are found. */
function compileBundle(root, outfile) {
  const copy = mkdtempSync(join(dirname(root), 'bundle-'))
  try {
    cpSync(join(root, 'dist', 'bundle'), copy, { recursive: true })
    const chunks = join(copy, 'chunks')
    const named = readdirSync(chunks)
    const loader = named.find((name) => /^jiti-static-loader-.*\.js$/.test(name))
    const config = named.find((name) => readFileSync(join(chunks, name), 'utf8').includes(QUICKJS_ON_DISK))
    if (loader === undefined || config === undefined || !Object.values(BUNDLED_WORKERS).every((name) => named.includes(name))) {
      throw new Error(`the Pi in ${root} is bundled in another way than the one that was tried`)
    }
    writeFileSync(join(chunks, loader), "export { createJiti } from 'jiti/static'\n")
    const text = readFileSync(join(chunks, config), 'utf8').replace(QUICKJS_ON_DISK, 'quickJSWasmPath??=embeddedQuickJS')
    writeFileSync(join(chunks, config), `import embeddedQuickJS from 'quickjs-wasi/quickjs.wasm'\n${text}`)
    for (const [path, name] of Object.entries(BUNDLED_WORKERS)) {
      const to = join(copy, path)
      mkdirSync(dirname(to), { recursive: true })
      writeFileSync(to, `import '${'../'.repeat(path.split('/').length - 1)}chunks/${name}'\n`)
    }
    compile(copy, ['cli-runtime.js', ...Object.keys(BUNDLED_WORKERS)], outfile)
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
    throw new Error(
      `Bun can't compile the Pi in ${cwd}: ${String(error.stderr ?? error.message)
        .trim()
        .slice(-2000)}`,
    )
  }
}
