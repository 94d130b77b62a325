/**
 * The check for import circles among the files of `lib/` and `extensions/`. It prints each circle by its shortest path, one
 * import per line, and exits with 1 where it finds one.
 *
 *     node scripts/circles.mjs [ROOT]
 *
 * Imports of types count as all others.
 */
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { circlesOf } from './circles/graph.mjs'
import { importsOfFolders } from './circles/typescript.mjs'

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)))
const folders = ['lib', 'extensions'].map((name) => join(root, name)).filter((folder) => existsSync(folder))
const imports = importsOfFolders(folders)
const circles = circlesOf(imports)
for (const circle of circles) {
  const lines = circle.map(({ from, to, line, what }) => `  ${relative(root, from)}:${line} imports ${what} from ${relative(root, to)}`)
  console.log(`${lines.join('\n')}\n`)
}
const found = `${circles.length} ${circles.length === 1 ? 'circle' : 'circles'}`
console.log(`${imports.size} files of TypeScript with ${found}`)
if (imports.size === 0) throw new Error(`there is no source file below ${root}`)
process.exitCode = circles.length > 0 ? 1 : 0
