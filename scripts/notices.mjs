/**
 * Writes THIRD-PARTY-NOTICES.txt: the licences of everything that is compiled into the addon. `--check` fails if the file is
 * not up to date.
 *
 * The crates' texts are those in their packages. A crate without one is listed under the standard text of its licence that
 * another crate has.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT, TARGETS } from './release/targets.mjs'

const FILE = join(ROOT, 'THIRD-PARTY-NOTICES.txt')
const LICENCE = /^(licen[cs]e|copying|notice|unlicense|copyright)/i
/** Code and data that other crates bring with them. */
const INCLUDED = [
  { name: 'SQLite', from: 'libsqlite3-sys', text: 'SQLite is in the public domain: https://sqlite.org/copyright.html' },
  { name: 'Zstandard', from: 'zstd-sys', file: 'zstd/LICENSE' },
  { name: 'Rules of gitleaks', text: readRules() },
]

const packages = compiled()
const text = notices(packages)
if (!process.argv.includes('--check')) writeFileSync(FILE, text)
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write('THIRD-PARTY-NOTICES.txt is not up to date: run node scripts/notices.mjs\n')
  process.exitCode = 1
}

/** The packages from the registry that the published addons are built from; not those of tests and build scripts. */
function compiled() {
  const platforms = Object.values(TARGETS).flatMap(({ triple }) => ['--filter-platform', triple])
  const metadata = JSON.parse(
    execFileSync('cargo', ['metadata', '--format-version', '1', '--locked', ...platforms], { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 }),
  )
  const byId = new Map(metadata.packages.map((one) => [one.id, one]))
  const nodes = new Map(metadata.resolve.nodes.map((node) => [node.id, node]))
  const reached = new Set()
  const waiting = [metadata.packages.find(({ name }) => name === 'pi-context-manager').id]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (reached.has(id)) continue
    reached.add(id)
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      const isMacro = byId.get(pkg).targets.some(({ kind }) => kind.includes('proc-macro'))
      if (!isMacro && kinds.some(({ kind }) => kind === null)) waiting.push(pkg)
    }
  }
  return [...reached]
    .map((id) => byId.get(id))
    .filter(({ source }) => source !== null)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1))
}

/** The notices: each text once, with all that it is for. */
function notices(all) {
  const groups = new Map()
  const bare = []
  for (const one of all) {
    const folder = dirname(one.manifest_path)
    const found = readdirSync(folder)
      .filter((name) => LICENCE.test(name) && !name.endsWith('.rs'))
      .sort()
    // Chooses MIT among several licenses.
    const mit = one.license?.includes(' OR ') ? found.filter((name) => /mit/i.test(name)) : []
    const files = mit.length > 0 ? mit : found
    const texts = files.map((name) => normal(readFileSync(join(folder, name), 'utf8')))
    if (texts.length === 0) bare.push(one)
    for (const each of texts) groups.set(each, [...(groups.get(each) ?? []), `${one.name} ${one.version} (${one.license})`])
  }
  for (const { name, from, file, text: own } of INCLUDED) {
    const crate = all.find((one) => one.name === from)
    if (from !== undefined && crate === undefined) continue
    const each = normal(own ?? readFileSync(join(dirname(crate.manifest_path), file), 'utf8'))
    groups.set(each, [...(groups.get(each) ?? []), name])
  }
  const sections = [...groups].sort(([, a], [, b]) => (a[0] < b[0] ? -1 : 1)).map(([each, names]) => `${names.join('\n')}\n\n${each}`)
  const listed = bare.map(({ name, version, license, repository }) => `${name} ${version} (${license}) ${repository ?? ''}`.trimEnd())
  const rest =
    listed.length === 0 ? [] : [`Packages without a licence file of their own; their licences are named, and the texts are above:\n\n${listed.join('\n')}\n`]
  const head = 'The prebuilt addon of pi-context-manager contains the following work of others. Written by scripts/notices.mjs.\n'
  return [head, ...sections, ...rest].join(`\n${'-'.repeat(80)}\n\n`)
}

function normal(text) {
  return `${text
    .replaceAll('\r\n', '\n')
    .replaceAll(/[ \t]+$/gm, '')
    .trim()}\n`
}

/** The licence of the rules, which stands beside them. */
function readRules() {
  const folder = join(ROOT, 'crates', 'secrets')
  const found = readdirSync(folder, { recursive: true }).find((name) => /licen[cs]e/i.test(String(name)))
  if (found === undefined) throw new Error('crates/secrets has no licence of the rules')
  return readFileSync(join(folder, String(found)), 'utf8')
}
