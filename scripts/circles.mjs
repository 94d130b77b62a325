/**
 * The check for import circles among the files of `lib/` and `extensions/`, and for names that a layer of the engine has
 * of one above it. It prints each circle by its shortest path, one import per line, and exits with 1 where it finds anything.
 *
 *     node scripts/circles.mjs [ROOT]
 *
 * Imports of types count as all others. In Rust only paths from the crate's root are seen; methods name none.
 */
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { circlesOf } from './circles/graph.mjs'
import { upwardNames } from './circles/layers.mjs'
import { importsOfFolders } from './circles/typescript.mjs'

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)))
const folders = ['lib', 'extensions'].map((name) => join(root, name)).filter((folder) => existsSync(folder))
const imports = importsOfFolders(folders)
const circles = circlesOf(imports)
for (const circle of circles) {
  const lines = circle.map(({ from, to, line, what }) => `  ${relative(root, from)}:${line} imports ${what} from ${relative(root, to)}`)
  console.log(`${lines.join('\n')}\n`)
}
const engine = join(root, 'crates/engine/src')
const { files, wrong } = existsSync(engine) ? upwardNames(engine) : { files: 0, wrong: [] }
for (const { file, line, layer } of wrong) console.log(`  ${relative(root, file)}:${line} names the layer ${layer}, which is above it`)
const found = `${circles.length} ${circles.length === 1 ? 'circle' : 'circles'}`
console.log(`${imports.size} files of TypeScript with ${found}, ${files} of the engine with ${wrong.length} names of a layer above`)
if (imports.size + files === 0) throw new Error(`there is no source file below ${root}`)
process.exitCode = circles.length + wrong.length > 0 ? 1 : 0
