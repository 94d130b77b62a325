/**
 * Builds the binary of one platform as it is published: `node scripts/release/build.mjs linux-x64-musl [folder]`.
 *
 * Binaries for Linux are linked by zig, also on the platform itself: so they run with an older glibc than the builder's.
 * Zig and its cargo command come from PyPI: `pip install ziglang cargo-zigbuild`. That for Windows is linked by MinGW, which
 * distributions have (Debian: `gcc-mingw-w64-x86-64`). RELEASE_PROFILE is Cargo's profile, default `dist`.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { addonOf, checkGlibc, platformOf, ROOT, TARGETS } from './targets.mjs'

/**
 * Builds a platform's binary into `folder`; gives its path.
 * @throws {Error} with a sentence, where a tool is missing or the binary is not what it should be
 */
export function build(platform, folder) {
  const target = TARGETS[platform]
  if (target === undefined) throw new Error(`unknown platform "${platform}": ${Object.keys(TARGETS).join(', ')}`)
  const profile = process.env.RELEASE_PROFILE || 'dist'
  const isLinux = platform.startsWith('linux')
  const isWindows = platform.startsWith('win32')
  if (platform.startsWith('darwin') && process.platform !== 'darwin') throw new Error(`${platform} is built on macOS only`)
  const triple = target.glibc === undefined ? target.triple : `${target.triple}.${target.glibc}`
  const args = [isLinux ? 'zigbuild' : 'build', '--package', 'pi-context-manager', '--lib', '--profile', profile]
  run('rustup', ['target', 'add', target.triple])
  // A shared library for musl: by default Rust links that libc statically.
  const flags = platform.endsWith('musl') ? { RUSTFLAGS: `${process.env.RUSTFLAGS ?? ''} -C target-feature=-crt-static` } : {}
  if (isWindows) flags.LIBNODE_PATH = emptyNode()
  run('cargo', [...args, '--target', isLinux ? triple : target.triple], flags)
  const out = process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target')
  const library = isWindows ? 'pi_context_manager.dll' : `libpi_context_manager.${isLinux ? 'so' : 'dylib'}`
  mkdirSync(folder, { recursive: true })
  const path = join(folder, addonOf(platform))
  copyFileSync(join(out, target.triple, profile === 'dev' ? 'debug' : profile, library), path)
  const found = platformOf(path)
  if (found !== platform) throw new Error(`${path} was to be for ${platform}, and is for ${found}`)
  checkGlibc(platform, path)
  return path
}

/**
 * A folder with an empty library of Node: the build script of napi links to one on Windows, although the addon looks Node's
 * functions up in the program that loads it.
 */
function emptyNode() {
  const folder = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'libnode')
  mkdirSync(folder, { recursive: true })
  // The build script looks for the first, the linker takes the second.
  writeFileSync(join(folder, 'libnode.dll'), '')
  writeFileSync(join(folder, 'libnode.dll.a'), '!<arch>\n')
  return folder
}

function run(command, args, env = {}) {
  try {
    execFileSync(command, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } })
  } catch (error) {
    const why = error.code === 'ENOENT' ? 'it is not installed' : `it ended with ${error.status ?? error.signal}`
    throw new Error(`"${command} ${args.join(' ')}" failed: ${why}`)
  }
}

if (process.argv[1] === import.meta.filename || process.argv[1]?.endsWith('release/build.mjs')) {
  try {
    const [platform, folder = 'artifacts'] = process.argv.slice(2)
    process.stdout.write(`${build(platform, resolve(folder))}\n`)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
