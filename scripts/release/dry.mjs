/**
 * The steps of the release workflow, as far as this machine can: `npm run release:dry`. Builds the binaries that can be built here,
 * packs everything, installs it from a registry on loopback into empty folders without Cargo, and runs it there. Only the workflow
 * builds macOS.
 *
 *   node scripts/release/dry.mjs [--binaries FOLDER] [platform...]
 *
 * With `--binaries` they are taken from a folder instead of being built. Binaries for other machines run where
 * RUN_LINUX_ARM64_GNU, RUN_LINUX_X64_MUSL or RUN_WIN32_X64_GNU is a command that starts such a Node, for instance
 * `qemu-aarch64 -L /usr/aarch64-linux-gnu /opt/node-arm64/bin/node`. Under Wine, Node for Windows can't write to a pipe:
 * that needs a script that gives it files. Wine 8 has no `bcryptprimitives.dll`, so it needs a substitute beside the binary;
 * Wine 10 has one.
 */
import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { checkAll, packAll, packDependencies } from './pack.mjs'
import { serve } from './registry.mjs'
import { addonOf, glibcOf, NAME, ROOT, TARGETS } from './targets.mjs'

const { values, positionals } = parseArgs({ options: { binaries: { type: 'string' } }, allowPositionals: true })
const wanted = positionals.length > 0 ? positionals : Object.keys(TARGETS).filter(isMadeHere)
const work = mkdtempSync(join(realpathSync(tmpdir()), 'release-'))
const report = new Map(wanted.map((platform) => [platform, []]))
let failed = false

try {
  const artifacts = values.binaries === undefined ? join(work, 'artifacts') : resolve(values.binaries)
  const built = wanted.filter((platform) =>
    attempt(platform, 'built', () => {
      if (values.binaries === undefined) build(platform, artifacts)
      checkAll(artifacts, [platform])
      const glibc = TARGETS[platform].glibc && glibcOf(join(artifacts, addonOf(platform)))
      return glibc === undefined ? '' : ` (needs glibc ${glibc})`
    }),
  )
  refusals(artifacts, built)
  const tarballs = packAll(artifacts, join(work, 'packages'), built)
  for (const path of tarballs) process.stdout.write(`${(statSync(path).size / 1e6).toFixed(1)} MB  ${path.split('/').at(-1)}\n`)
  const registry = await serve([...tarballs, ...packDependencies(join(work, 'packages'))])
  try {
    for (const platform of built) {
      // Asynchronous work of the registry must continue meanwhile: npm runs as a separate process, and the loop waits for it.
      const folder = await attemptLater(platform, 'installed', () => install(platform, registry.url))
      if (folder !== undefined) await attemptLater(platform, 'ran', () => tryOut(platform, folder))
    }
  } finally {
    await registry.close()
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
for (const [platform, lines] of report) process.stdout.write(`${platform}: ${lines.join(', ')}\n`)
for (const platform of Object.keys(TARGETS)) {
  if (!report.has(platform)) process.stdout.write(`${platform}: not built here, the workflow does\n`)
}
process.exitCode = failed ? 1 : 0

/** Binaries for Windows are made wherever MinGW is. */
function isMadeHere(platform) {
  if (platform.startsWith('win32')) return spawnSync('x86_64-w64-mingw32-gcc', ['--version']).status === 0
  return platform.startsWith(process.platform)
}

/** Checks that forbidden contents are refused: a platform without its binary, and one with another's. */
function refusals(artifacts, built) {
  const empty = join(work, 'empty')
  mkdirSync(empty)
  refused('without its binary', /has no binary/, () => packAll(empty, join(work, 'refused'), built))
  const [one, other] = built
  if (other === undefined) return
  copyFileSync(join(artifacts, `${NAME}.${one}.node`), join(empty, `${NAME}.${other}.node`))
  refused("with another's binary", /is for .*, not for/, () => packAll(empty, join(work, 'refused'), [other]))
}

function refused(what, sentence, pack) {
  try {
    pack()
  } catch (error) {
    if (sentence.test(error.message)) return
    throw error
  }
  throw new Error(`a platform package was packed ${what}`)
}

/** Installs from the registry, as on a machine of that platform without Cargo. */
async function install(platform, registry) {
  const folder = join(work, 'installed', platform)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const [os, cpu, libc] = platform.split('-')
  const args = ['install', NAME, '--registry', registry, '--omit=peer', '--no-audit', '--no-fund', '--cache', join(work, 'cache')]
  const kind = ['--os', os, '--cpu', cpu, ...(os === 'linux' ? ['--libc', libc === 'gnu' ? 'glibc' : libc] : [])]
  await run('npm', [...args, ...kind], folder)
  const addon = join(folder, 'node_modules', `${NAME}-${platform}`, `${NAME}.${platform}.node`)
  if (!existsSync(addon)) throw new Error(`npm did not install ${NAME}-${platform}`)
  return folder
}

async function tryOut(platform, folder) {
  const command = process.env[`RUN_${platform.toUpperCase().replaceAll('-', '_')}`]
  const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'gnu'
  const isHere = platform === [process.platform, process.arch, ...(process.platform === 'linux' ? [libc] : [])].join('-')
  if (!isHere && command === undefined) return 'not run: no such machine, and no emulation of it was named'
  const [file, ...args] = command?.split(' ') ?? [process.execPath]
  const script = join(folder, 'try.mjs')
  copyFileSync(join(ROOT, 'scripts', 'release', 'try.mjs'), script)
  return (await run(file, [...args, script], folder)).trim()
}

/** A process without Cargo on its PATH: npm, Node and the system's own programs are there. */
function run(file, args, cwd) {
  const bin = join(work, 'bin')
  if (!existsSync(bin)) {
    mkdirSync(bin)
    for (const name of ['node', 'npm']) symlinkSync(found(name), join(bin, name))
  }
  const env = { HOME: work, PATH: [bin, '/usr/bin', '/bin'].join(delimiter) }
  return new Promise((done, fail) => {
    const running = execFile(file, args, { cwd, env, encoding: 'utf8' }, (error, stdout, stderr) =>
      error === null ? done(stdout) : fail(new Error(`${file} ${args.join(' ')}: ${(stderr || error.message).trim()}`)),
    )
    running.stdin?.end()
  })
}

function found(name) {
  const folders = [dirname(process.execPath), ...(process.env.PATH ?? '').split(delimiter)]
  const path = folders.map((folder) => join(folder, name)).find((candidate) => existsSync(candidate))
  if (path === undefined) throw new Error(`${name} is not on PATH`)
  return realpathSync(path)
}

function attempt(platform, what, work) {
  try {
    const detail = work()
    report.get(platform).push((values.binaries === undefined ? what : 'binary given') + detail)
    return true
  } catch (error) {
    return note(platform, what, error)
  }
}

async function attemptLater(platform, what, work) {
  try {
    const value = await work()
    report.get(platform).push(what === 'ran' ? value : what)
    return value
  } catch (error) {
    note(platform, what, error)
    return undefined
  }
}

function note(platform, what, error) {
  failed = true
  report.get(platform).push(`NOT ${what}: ${error.message}`)
  return false
}
