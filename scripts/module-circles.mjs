/**
 * Checks that no module of a crate imports itself through others. The compiler holds that between crates and not within one. A file
 * with its tests is a module; a folder's `mod.rs` is the folder's, and its files are modules of their own. What `lib.rs` passes on
 * counts as what it comes from. `--list` also prints who imports whom.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const crates = fileURLToPath(new URL('../crates', import.meta.url))

/** Rust files below a folder. */
const filesIn = (folder) =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesIn(path) : name.endsWith('.rs') ? [path] : []
  })

/** The module of a file, as a path of names: `request::rolls`; `` for the crate's root. */
function moduleOf(source, file) {
  const parts = relative(source, file).replace(/\.rs$/, '').split(/[/\\]/)
  if (['mod', 'lib', 'main'].includes(parts.at(-1))) parts.pop()
  return parts.join('::')
}

/** The code without comments, texts, and what only tests have. */
function codeOf(file) {
  const text = readFileSync(file, 'utf8')
    .replace(/\/\/[^\n]*/g, '')
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
  const test = text.search(/#\[cfg\(test\)\]\s*mod \w+ \{/)
  return (test < 0 ? text : text.slice(0, test)).replace(/#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?(?:use|mod)\b[^;]*;/g, '')
}

/** Splits `a::{b, c::{d, e}}` into `a::b`, `a::c::d`, `a::c::e`. */
function spread(tree) {
  const open = tree.indexOf('{')
  if (open < 0) return [tree.replace(/\s+as\s+\w+/, '').trim()]
  const inner = tree.slice(open + 1, tree.lastIndexOf('}'))
  const parts = []
  let depth = 0
  let from = 0
  for (let at = 0; at <= inner.length; at += 1) {
    if (inner[at] === '{') depth += 1
    if (inner[at] === '}') depth -= 1
    if (at === inner.length || (inner[at] === ',' && depth === 0)) {
      if (inner.slice(from, at).trim() !== '') parts.push(inner.slice(from, at).trim())
      from = at + 1
    }
  }
  return parts.flatMap((part) => spread(tree.slice(0, open) + part))
}

/** All paths that begin at the crate or at a module beside this one, as absolute ones: `session::state::Session`. */
function pathsIn(code, module) {
  const found = []
  for (const [, path] of code.matchAll(
    /\b((?:crate|super|self)::(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|[\w:]|(?<=::)\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})+)/g,
  )) {
    for (const one of spread(path)) {
      const names = one.split('::').map((name) => name.trim())
      const base = module === '' || names[0] === 'crate' ? [] : module.split('::')
      if (names[0] === 'crate' || names[0] === 'self') names.shift()
      for (; names[0] === 'super'; names.shift()) base.pop()
      found.push([...base, ...names].filter((name) => name !== '*' && name !== 'self' && name !== ''))
    }
  }
  return found
}

/** The circles of a crate, each as its modules. */
function circlesOf(crate, isListed) {
  const source = join(crates, crate, 'src')
  const files = filesIn(source).filter((file) => !/(^|_)tests?\.rs$/.test(basename(file)))
  const modules = new Map(files.map((file) => [moduleOf(source, file), codeOf(file)]))
  // The items that a module passes on, by their names there.
  const passed = new Map()
  for (const [module, code] of modules) {
    for (const [, tree] of code.matchAll(/\bpub(?:\([^)]*\))?\s+use\s+([^;]+);/g)) {
      for (const one of spread(tree)) {
        const names = one.split('::').map((name) => name.trim())
        const base = names[0] === 'crate' ? [] : names[0] === 'super' ? module.split('::').slice(0, -1) : module === '' ? [] : module.split('::')
        const rest = ['crate', 'self', 'super'].includes(names[0]) ? names.slice(1) : names
        passed.set([...(module === '' ? [] : module.split('::')), names.at(-1)].join('::'), [...base, ...rest])
      }
    }
  }
  const moduleFor = (path, hops = 0) => {
    const through = passed.get(path.join('::'))
    if (through !== undefined && hops < 5 && through.join('::') !== path.join('::')) return moduleFor(through, hops + 1)
    for (let length = path.length; length > 0; length -= 1) {
      const name = path.slice(0, length).join('::')
      if (!modules.has(name)) continue
      const behind = passed.get([name, path[length]].join('::'))
      return behind !== undefined && hops < 5 ? moduleFor([...behind, ...path.slice(length + 1)], hops + 1) : name
    }
    return ''
  }
  const edges = new Map()
  for (const [module, code] of modules) {
    const to = new Set(pathsIn(code.replace(/\bpub(?:\([^)]*\))?\s+use\s+[^;]+;/g, ''), module).map((path) => moduleFor(path)))
    to.delete(module)
    edges.set(module, to)
  }
  if (isListed) for (const [module, to] of edges) console.log(`${crate}: ${module || '(root)'} > ${[...to].map((one) => one || '(root)').join(', ')}`)
  return componentsOf(edges)
}

/** The groups of modules that reach each other. */
function componentsOf(edges) {
  const reached = new Map([...edges.keys()].map((module) => [module, reachableFrom(module, edges)]))
  const groups = new Map()
  for (const [module, all] of reached) {
    const group = [...all].filter((other) => reached.get(other)?.has(module)).sort()
    if (group.length > 1) groups.set(group.join(), group)
  }
  return [...groups.values()]
}

/** The modules that one reaches through others; itself if it is in a circle. */
function reachableFrom(module, edges) {
  const found = new Set()
  const next = [...(edges.get(module) ?? [])]
  for (let one = next.pop(); one !== undefined; one = next.pop()) {
    if (found.has(one)) continue
    found.add(one)
    next.push(...(edges.get(one) ?? []))
  }
  return found
}

const isListed = process.argv.includes('--list')
for (const crate of readdirSync(crates).filter((name) => existsSync(join(crates, name, 'src')))) {
  for (const circle of circlesOf(crate, isListed)) {
    console.error(`crates/${crate}: these modules import each other: ${circle.map((one) => one || '(root)').join(', ')}`)
    process.exitCode = 1
  }
}
