/**
 * Assembles what is published: `node scripts/release/pack.mjs ARTIFACTS OUT [platform...]` packs the main package and those
 * of the platforms (default: all) from a folder of binaries. A platform package without its binary, or with that of
 * another platform, is refused, and then nothing is packed.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { addonOf, checkGlibc, manifestIn, NAME, platformOf, ROOT, TARGETS } from './targets.mjs'

/** Files in every tarball; npm adds a LICENSE by itself, and other files that `files` names. */
const LEGAL = ['LICENSE', 'THIRD-PARTY-NOTICES.txt']

/** Fields of the main package.json that only development needs. */
const DEVELOPMENT = ['scripts', 'devDependencies', 'workspaces', 'napi']

/**
 * Packs the packages of `platforms` and the main package, which depends on those of all platforms.
 * @returns {string[]} the tarballs in the order in which they are to be published: the main package last
 * @throws {Error} with a sentence for each binary that is missing or wrong
 */
export function packAll(artifacts, out, platforms = Object.keys(TARGETS)) {
  const version = manifestIn(ROOT).version
  const problems = platforms.flatMap((platform) => problemsOf(platform, artifacts, version))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  mkdirSync(out, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'pack-'))
  try {
    const folders = platforms.map((platform) => {
      const folder = join(work, platform)
      cpSync(join(ROOT, 'npm', platform), folder, { recursive: true })
      for (const name of LEGAL) copyFileSync(join(ROOT, name), join(folder, name))
      copyFileSync(binaryOf(platform, artifacts), join(folder, addonOf(platform)))
      return folder
    })
    return [...folders, mainPackage(join(work, 'main'), version)].map((folder) => pack(folder, out))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/**
 * Checks that the binaries run with the glibc that we promise. Only what is published must: a binary that is made for tests
 * on this machine is linked to its own glibc.
 * @throws {Error} with a sentence
 */
export function checkAll(artifacts, platforms) {
  for (const platform of platforms) {
    const path = binaryOf(platform, artifacts)
    if (path !== undefined) checkGlibc(platform, path)
  }
}

function problemsOf(platform, artifacts, version) {
  const folder = join(ROOT, 'npm', platform)
  if (!existsSync(folder)) return [`npm/ has no platform "${platform}"`]
  const problems = []
  const manifest = manifestIn(folder)
  if (manifest.version !== version) problems.push(`npm/${platform} is ${manifest.version}, and the main package ${version}`)
  if (!manifest.files.includes(addonOf(platform))) problems.push(`npm/${platform} does not publish ${addonOf(platform)}`)
  const path = binaryOf(platform, artifacts)
  if (path === undefined) {
    return [...problems, `${NAME}-${platform} has no binary: ${addonOf(platform)} is not below ${artifacts}`]
  }
  try {
    const found = platformOf(path)
    if (found !== platform) problems.push(`${path} is for ${found}, not for ${platform}`)
  } catch (error) {
    problems.push(error.message)
  }
  return problems
}

/** A binary directly in the folder, or in one of its folders: an upload of a workflow has one for each. */
function binaryOf(platform, artifacts) {
  if (!existsSync(artifacts)) return undefined
  const inside = readdirSync(artifacts, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const folders = [artifacts, ...inside.map((entry) => join(artifacts, entry.name))]
  return folders.map((folder) => join(folder, addonOf(platform))).find((path) => existsSync(path))
}

/** The main package has one build: `lib/` and `extensions/` are compiled in place, and no sources are beside them. */
function mainPackage(folder, version) {
  const manifest = manifestIn(ROOT)
  mkdirSync(folder)
  const compiled = ['lib', 'extensions']
  for (const name of [...new Set([...manifest.files, 'README.md', ...LEGAL])]) {
    if (!compiled.includes(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', join(ROOT, 'tsconfig.pack.json'), '--outDir', folder], { stdio: 'inherit' })
  for (const field of ['main', 'types', 'exports', 'bin', 'pi']) manifest[field] = inPackage(manifest[field])
  for (const name of DEVELOPMENT) delete manifest[name]
  manifest.optionalDependencies = Object.fromEntries(Object.keys(TARGETS).map((platform) => [`${NAME}-${platform}`, version]))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  return folder
}

/**
 * Packs what the main package depends on at run time, as it is installed here: a registry on loopback has nothing else.
 * @returns {string[]} the tarballs
 */
export function packDependencies(out) {
  mkdirSync(out, { recursive: true })
  return Object.keys(manifestIn(ROOT).dependencies ?? {}).map((name) => pack(join(ROOT, 'node_modules', name), out))
}

/** The place in the package of a file of the checkout's build, or of a source of the extension. */
function inPackage(value) {
  if (typeof value === 'string') return value.replace(/^\.\/dist\//, './lib/').replace(/^(\.\/extensions\/.*)\.ts$/, '$1.js')
  if (Array.isArray(value)) return value.map(inPackage)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inPackage(each)]))
}

function pack(folder, out) {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', out]
  const text = execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const packed = JSON.parse(text)
  return join(out, (Array.isArray(packed) ? packed : Object.values(packed))[0].filename)
}

if (process.argv[1]?.endsWith('release/pack.mjs')) {
  try {
    const [artifacts = 'artifacts', out = 'packages', ...platforms] = process.argv.slice(2)
    checkAll(resolve(artifacts), platforms.length > 0 ? platforms : Object.keys(TARGETS))
    const packed = packAll(resolve(artifacts), resolve(out), platforms.length > 0 ? platforms : undefined)
    process.stdout.write(`${packed.join('\n')}\n`)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
