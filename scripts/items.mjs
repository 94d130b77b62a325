/**
 * The public items of each Rust crate, as its documentation lists them (run `cargo doc --workspace --no-deps --all-features` first).
 * `node scripts/items.mjs` fails if they
 * differ from docs/api/crates.txt; `--write` saves them after a change on purpose.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const saved = join(root, 'docs/api/crates.txt')

const cargo = (...args) => execFileSync('cargo', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 })
const metadata = JSON.parse(cargo('metadata', '--format-version=1', '--no-deps'))
const crates = metadata.packages
  .map(({ name }) => name)
  .filter((name) => name.startsWith('context-'))
  .toSorted()
/** The folder of the documentation, which lies in that of the target if Cargo is given one. */
const folders = ['.', ...readdirSync(metadata.target_directory)].map((name) => join(metadata.target_directory, name, 'doc'))
const docs = folders.find((folder) => existsSync(join(folder, 'context_model', 'all.html')))
if (docs === undefined) throw new Error('the documentation is missing: cargo doc --workspace --no-deps --all-features')

/** The items that the page with all of a crate's items links to, such as `struct Archive`. */
function itemsOf(crate) {
  const page = readFileSync(join(docs, crate.replaceAll('-', '_'), 'all.html'), 'utf8')
  const links = page.matchAll(/<li><a href="(?:[\w/]+\/)?(\w+)\.\w+\.html">([\w:]+)<\/a><\/li>/g)
  return [...links].map(([, kind, name]) => `${kind} ${name}`).toSorted()
}

const listed = crates.map((crate) => [crate, itemsOf(crate)])
const count = listed.reduce((sum, [, items]) => sum + items.length, 0)
const text = [
  `${count} items that one crate offers to the others. \`node scripts/items.mjs --write\` writes this file.`,
  ...listed.map(([crate, items]) => `\n${crate}: ${items.length}\n${items.map((item) => `  ${item}`).join('\n')}`),
  '',
].join('\n')
if (process.argv.includes('--write')) {
  writeFileSync(saved, text)
} else {
  const [before, now] = [readFileSync(saved, 'utf8').split('\n'), text.split('\n')]
  const differs = [
    ...now.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
    ...before.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
  ]
  if (differs.length > 0) {
    console.error(differs.join('\n'))
    console.error('the public items of a crate differ from docs/api/crates.txt; after a change on purpose: node scripts/items.mjs --write')
    process.exitCode = 1
  }
}
