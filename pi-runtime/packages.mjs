/**
 * Packages that are fetched only where they are asked for, because `npm install` can't (a part of the newest Pi is not on
 * the registry) or should not (Bun is large): by `npm pack`, checked against the SHA-512 that stands here, and kept.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The newest Pi that is supported: what `npm view @earendil-works/pi-coding-agent version` said last. */
export const NEWEST_PI = '1.6.0'

const PI = '@earendil-works/pi-coding-agent'

/** Each with its `dist.integrity`, from the registry. */
const INTEGRITY = {
  [`${PI}@${NEWEST_PI}`]: 'zX1BVEsshx7A2MRuQ6jfr3RJGWw4Wn+vLq5ZfmlvS1RskhRmByaSZVXH/zcwRrWHO7qPgs98pNCbPOEti/t0fQ==',
  'jiti@2.7.0': 'AC/7JofJvZGrrneWNaEnJeOLUx+JlGt7tNa0wZiRPT4MY1wmfKjt2+6O2p2uz2+skll8OZZmJMNqeke7kKbNgQ==',
  'quickjs-wasi@3.6.2': 'FCqGtGOrMgzUiIrMNMA2YnsOxCNwo31dzqXvclXUC6xeT35NJLKXQJsvbeCTjvoFAwZgEAPg8U6+KAPDGXn8Mg==',
  '@silvia-odwyer/photon-node@0.3.4': 'bnly4BKB3KDTFxrUIcgCLbaeVVS8lrAkri1pEzskpmxu9MdfGQTy8b8EgcD83ywD3RPMsIulY8xJH5Awa+t9fA==',
  '@oven/bun-linux-x64@1.4.5': 'IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==',
  '@oven/bun-linux-aarch64@1.4.5': '4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==',
  '@oven/bun-darwin-aarch64@1.4.5': '4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==',
  '@oven/bun-darwin-x64@1.4.5': 'qkLPMGHZM9NI6CeHTWwVezzmlo6cC4Ta7yUAjYIWXS366qQcOlcp75t2uZyiuVRBMPS0h9qE0tCcvCHGaFqjJg==',
}

/** Bun's package for this machine, by `platform-arch`. */
const BUN = {
  'linux-x64': '@oven/bun-linux-x64@1.4.5',
  'linux-arm64': '@oven/bun-linux-aarch64@1.4.5',
  'darwin-arm64': '@oven/bun-darwin-aarch64@1.4.5',
  'darwin-x64': '@oven/bun-darwin-x64@1.4.5',
}

/** Packages that the bundled Pi still imports, beside it. */
const BESIDE_PI = ['jiti@2.7.0', 'quickjs-wasi@3.6.2', '@silvia-odwyer/photon-node@0.3.4']

/** The folder for everything that is kept: below the `node_modules` that npm made. */
export const KEPT = resolve(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules', '.cache', 'pi-runtime')

/**
 * The newest Pi's package folder, with what it needs beside it. Fetched where it is not there yet.
 * @returns {string} absolute path
 * @throws {Error} with a sentence, where the registry does not answer or a package is not what stands here
 */
export function newestPi() {
  const folder = join(KEPT, `pi-${NEWEST_PI}`, 'node_modules')
  for (const name of BESIDE_PI) unpacked(name, folder)
  return unpacked(`${PI}@${NEWEST_PI}`, folder)
}

/**
 * The Bun for this machine. Fetched where it is not there yet.
 * @returns {string} absolute path of the binary
 * @throws {Error} as {@link newestPi}, and where there is none for this machine
 */
export function bun() {
  const name = BUN[`${process.platform}-${process.arch}`]
  if (name === undefined) throw new Error(`Bun is not available for ${process.platform}-${process.arch}`)
  return join(unpacked(name, join(KEPT, 'bun')), 'bin', 'bun')
}

/** A package below `folder`, whole or not at all: several processes may ask at once. */
function unpacked(spec, folder) {
  const target = join(folder, spec.slice(0, spec.lastIndexOf('@')))
  if (existsSync(join(target, 'package.json'))) return target
  mkdirSync(dirname(target), { recursive: true })
  const work = mkdtempSync(join(KEPT, 'fetch-'))
  try {
    const tarball = fetched(spec, work)
    execFileSync('tar', ['-xzf', basename(tarball)], { cwd: work })
    renameSync(join(work, 'package'), target)
  } catch (error) {
    if (!existsSync(join(target, 'package.json'))) throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return target
}

function fetched(spec, folder) {
  let name
  try {
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    const out = execFileSync(npm, ['pack', spec, '--json', '--pack-destination', folder], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32',
    })
    const packed = JSON.parse(out)
    name = (Array.isArray(packed) ? packed : Object.values(packed))[0].filename
  } catch (error) {
    throw new Error(`"npm pack ${spec}" failed: ${String(error.stderr ?? error.message).trim()}`)
  }
  const tarball = join(folder, basename(name))
  const found = createHash('sha512').update(readFileSync(tarball)).digest('base64')
  if (found !== INTEGRITY[spec]) throw new Error(`${spec} is not the package that was tried: its SHA-512 is ${found}`)
  return tarball
}
