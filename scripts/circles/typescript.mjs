/** Which TypeScript file imports from which. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const TEXT = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/
const COMMENT = /\/\/[^\n]*|\/\*[^]*?\*\//

/** `import … from '…'`, `export … from '…'`, `import '…'` and `import('…')`, whether of values or of types. */
const IMPORT = /\b(?:im|ex)port\b(?<what>[^'"`;()]*?)\bfrom\s*(['"])(?<from>.+?)\2|\bimport\s*\(?\s*(['"])(?<whole>.+?)\4/

/**
 * The imports among all files below some folders.
 *
 * @param {string[]} folders Absolute paths.
 * @returns {import('./graph.mjs').Imports}
 */
export function importsOfFolders(folders) {
  const imports = new Map()
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true }).sort()) {
      const file = join(folder, name)
      if (/\.ts$/.test(name)) imports.set(file, importsOf(file))
    }
  }
  return imports
}

function importsOf(file) {
  const text = withoutComments(readFileSync(file, 'utf8'))
  const imports = new Map()
  for (const { index, groups } of text.matchAll(all(IMPORT, TEXT))) {
    const name = groups.from ?? groups.whole
    if (!name?.startsWith('.')) continue
    const path = resolve(dirname(file), name)
    const to = [path, path.replace(/\.js$/, '.ts'), `${path}.ts`, join(path, 'index.ts')].find(
      (candidate) => candidate.endsWith('.ts') && existsSync(candidate),
    )
    if (to === undefined || to === file || imports.has(to)) continue
    const what = groups.what?.replace(/\s+/g, ' ').trim() ?? 'all'
    const line = text.slice(0, index).split('\n').length
    imports.set(to, { line, what })
  }
  return imports
}

/** The same text with spaces for comments, so that every line keeps its number. */
function withoutComments(text) {
  return text.replace(all(TEXT, COMMENT), (part) => (part.startsWith('/') ? part.replace(/[^\n]/g, ' ') : part))
}

/** Whichever of some expressions comes first, everywhere. */
function all(...expressions) {
  return new RegExp(expressions.map(({ source }) => source).join('|'), 'g')
}
