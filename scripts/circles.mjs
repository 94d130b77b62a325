/**
 * The check for import circles: among the source files of each crate, and among the files of `lib/` and `extensions/`.
 * It prints each circle by its shortest path, one import per line, and exits with 1 where there is one.
 *
 *     node scripts/circles.mjs [--without FOLDER]... [ROOT]
 *
 * An import counts where it names something that the other file really defines: a `mod.rs` that only re-exports what
 * is below it is looked through. Tests are left out; imports of types count as all others. Calls of methods can't be
 * seen here, because they name no path.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { circlesOf } from './circles/graph.mjs'
import { importsOfCrate } from './circles/rust.mjs'
import { importsOfFolders } from './circles/typescript.mjs'

const { values, positionals } = parseArgs({
  options: { without: { type: 'string', multiple: true, default: [] } },
  allowPositionals: true,
})
const root = resolve(positionals[0] ?? fileURLToPath(new URL('..', import.meta.url)))
const left = values.without.map((folder) => folder.replace(/\/$/, ''))
for (const folder of left) {
  if (!existsSync(join(root, folder))) throw new Error(`--without ${folder}: there is no such folder`)
}

const crates = existsSync(join(root, 'crates')) ? readdirSync(join(root, 'crates')).sort() : []
const sources = [...crates.map((name) => `crates/${name}`), 'src']
  .filter((folder) => !left.includes(folder))
  .map((folder) => (folder === 'src' ? folder : `${folder}/src`))
  .filter((name) => existsSync(join(root, name, 'lib.rs')))
  .map((name) => ({ name, imports: importsOfCrate(join(root, name, 'lib.rs')) }))
const folders = ['lib', 'extensions'].filter((name) => !left.includes(name) && existsSync(join(root, name)))
if (folders.length > 0) {
  const imports = importsOfFolders(folders.map((name) => join(root, name)))
  sources.push({ name: folders.join(' and '), imports })
}

let files = 0
let found = 0
for (const { name, imports } of sources) {
  const circles = circlesOf(imports)
  files += imports.size
  found += circles.length
  if (circles.length > 0) console.log(`${name}: ${circles.length} ${circles.length === 1 ? 'circle' : 'circles'}`)
  for (const circle of circles) {
    const lines = circle.map(({ from, to, line, what }) => {
      return `  ${relative(root, from)}:${line} imports ${what} from ${relative(root, to)}`
    })
    console.log(`${lines.join('\n')}\n`)
  }
}
console.log(`${files} files in ${sources.length} crates and folders, ${found} ${found === 1 ? 'circle' : 'circles'}`)
if (files === 0) throw new Error(`there is no source file below ${root}`)
process.exitCode = found > 0 ? 1 : 0
