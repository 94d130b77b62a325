/** Which file of a crate uses names that which other file defines. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tokensOf } from './rust-tokens.mjs'

/** The keywords that begin an item and define the name behind them. */
const DEFINING = new Set(['fn', 'struct', 'enum', 'union', 'trait', 'type', 'const', 'static', 'mod'])

/** Items that end with a semicolon, also where a block stands in them. */
const STATEMENTS = new Set(['const', 'static', 'type', 'use'])

/** What may stand before the keyword of a function or an implementation. */
const MODIFIERS = new Set(['async', 'const', 'default', 'extern', 'unsafe'])

const OPENING = '([{'
const CLOSING = ')]}'

/**
 * A module as its source says it.
 *
 * `children` are modules by their names; `items` the names that it defines; `uses` the leaves of its `use` trees;
 * `paths` all paths in its code.
 */
class Module {
  children = new Map()
  items = new Set()
  uses = []
  paths = []

  constructor(file, parent, folder) {
    this.file = file
    this.parent = parent
    /** Where the files of its children are. */
    this.folder = folder
  }
}

/**
 * The imports among the files of a crate, tests left out.
 *
 * @param {string} rootFile The crate's `lib.rs`.
 * @returns {import('./graph.mjs').Imports}
 */
export function importsOfCrate(rootFile) {
  const modules = []
  const root = moduleOf(rootFile, undefined, dirname(rootFile), modules)
  const imports = new Map(modules.map(({ file }) => [file, new Map()]))
  for (const module of modules) {
    const note = (found, line, what) => {
      const file = found?.file
      if (file === undefined || file === module.file || imports.get(module.file).has(file)) return
      imports.get(module.file).set(file, { line, what })
    }
    const heads = new Set(module.paths.map(({ path }) => path[0]))
    for (const { path, name, line, isPublic } of module.uses) {
      // What is only passed on is a matter between who uses it and who defines it.
      const isUsed = name === '*' || !isPublic || heads.has(name)
      if (isUsed) note(resolved(root, module, path), line, path.join('::'))
    }
    for (const { path, line } of module.paths) {
      if (path.length > 1 || comesByGlob(module, path[0])) note(resolved(root, module, path), line, path.join('::'))
    }
  }
  return imports
}

function moduleOf(file, parent, folder, modules) {
  const module = new Module(file, parent, folder)
  modules.push(module)
  readItems(module, tokensOf(readFileSync(file, 'utf8')), modules)
  return module
}

/** Reads the items of a module from its tokens. */
function readItems(module, tokens, modules) {
  let at = 0
  while (at < tokens.length) {
    const start = at
    let isTest = false
    let path
    while (tokens[at]?.text === '#') {
      const open = tokens[at + 1]?.text === '!' ? at + 2 : at + 1
      const end = closing(tokens, open)
      const attribute = tokens.slice(open + 1, end).map((token) => token.text)
      isTest ||= /^(test|cfg\(test\)|cfg\(all\(test,.*)$/.test(attribute.join(''))
      if (attribute[0] === 'path') path = attribute[2]?.slice(1, -1)
      at = end + 1
    }
    const end = endOfItem(tokens, at)
    if (!isTest) readItem(module, tokens.slice(at, end), path, modules)
    at = Math.max(end, start + 1)
  }
}

function readItem(module, tokens, path, modules) {
  const at = keywordOf(tokens, 0)
  const keyword = tokens[at]?.text
  const name = tokens[at + 1]?.text
  if (keyword === 'use') {
    readUse(module, tokens.slice(at + 1), tokens[0].text === 'pub')
  } else if (keyword === 'mod' && tokens[at + 2]?.text === '{') {
    const child = new Module(module.file, module, join(module.folder, name))
    modules.push(child)
    module.children.set(name, child)
    readItems(child, tokens.slice(at + 3, -1), modules)
  } else if (keyword === 'mod') {
    const places = [`${name}.rs`, `${name}/mod.rs`].map((place) => join(module.folder, place))
    const file = path === undefined ? places.find((place) => existsSync(place)) : join(dirname(module.file), path)
    if (file === undefined || !existsSync(file)) throw new Error(`${module.file}: mod ${name} has no file`)
    module.children.set(name, moduleOf(file, module, join(module.folder, name), modules))
  } else {
    if (keyword === 'macro_rules') module.items.add(tokens[at + 2]?.text)
    else if (DEFINING.has(keyword)) module.items.add(name)
    readCode(module, tokens)
  }
}

/** Reads the paths in an item. */
function readCode(module, tokens) {
  for (let at = 0; at < tokens.length; at += 1) {
    const { text, line, isName } = tokens[at]
    const before = tokens[at - 1]?.text
    // `+ use<'a>` says what a type captures.
    if (text === 'use' && tokens[at + 1]?.text !== '<') {
      const end = endOfItem(tokens, at)
      readUse(module, tokens.slice(at + 1, end), false)
      at = end - 1
      continue
    }
    const isField = before === '.' && tokens[at - 2]?.text !== '.'
    if (!isName || isField || before === '::' || DEFINING.has(before)) continue
    const path = [text]
    while (tokens[at + 1]?.text === '::' && tokens[at + 2]?.isName) {
      path.push(tokens[at + 2].text)
      at += 2
    }
    module.paths.push({ path, line })
  }
}

/** Reads a `use` tree: each leaf becomes a path with the name that it gets. */
function readUse(module, tokens, isPublic) {
  let at = 0
  const tree = (prefix) => {
    const path = [...prefix]
    let line = tokens[at]?.line
    for (; at < tokens.length; at += 1) {
      const { text } = tokens[at]
      if (text === '{') {
        at += 1
        while (at < tokens.length && tokens[at].text !== '}') {
          tree(path)
          if (tokens[at]?.text === ',') at += 1
        }
        at += 1
        return
      }
      if (text === ',' || text === '}' || text === ';') break
      if (text === 'as') {
        module.uses.push({ path, name: tokens[at + 1].text, line, isPublic })
        at += 2
        return
      }
      if (text === '::') continue
      line = tokens[at].line
      // `a::{self}` is `a`.
      if (text !== 'self' || path.length === 0) path.push(text)
    }
    const isGlob = path.at(-1) === '*'
    module.uses.push({ path: isGlob ? path.slice(0, -1) : path, name: path.at(-1), line, isPublic })
  }
  tree([])
}

/** The module or the item that a path names in a module; undefined for names of other crates. */
function resolved(root, module, path, seen = new Set()) {
  let place
  if (path[0] === 'crate') place = root
  else if (path[0] === 'self') place = module
  else if (path[0] === 'super') place = module.parent
  else {
    const found = named(root, module, path[0], path.length === 1, seen)
    if (!(found instanceof Module)) return found
    place = found
  }
  for (let at = 1; at < path.length && place !== undefined; at += 1) {
    if (path[at] === 'super') {
      place = place.parent
      continue
    }
    const found = named(root, place, path[at], at === path.length - 1, seen)
    // A name that a macro has made is one of that module's file.
    if (!(found instanceof Module)) return found ?? { file: place.file }
    place = found
  }
  // A module by itself defines nothing; what is used of it says where that is.
  return place && { module: place }
}

/** Returns what a name stands for in a module. A module and a function may share one; which it is tells its place. */
function named(root, module, name, isLast, seen) {
  const child = module.children.get(name)
  if (child !== undefined && !isLast) return child
  if (module.items.has(name)) return { file: module.file }
  const key = `${module.file} ${module.folder} ${name} ${isLast}`
  if (seen.has(key)) return child
  const passed = new Set([...seen, key])
  for (const use of module.uses) {
    if (use.name !== name && use.name !== '*') continue
    const found = resolved(root, module, use.path, passed)
    if (use.name === name) {
      if (found !== undefined) return found.module ?? found
    } else if (found?.module !== undefined) {
      const inside = named(root, found.module, name, isLast, passed)
      if (inside !== undefined) return inside
    }
  }
  return child
}

function comesByGlob(module, name) {
  const isOwn = module.items.has(name) || module.children.has(name) || module.uses.some((use) => use.name === name)
  return !isOwn && module.uses.some((use) => use.name === '*')
}

/** The place of the bracket that closes the one at this place. */
function closing(tokens, open) {
  let depth = 0
  for (let at = open; at < tokens.length; at += 1) {
    if (OPENING.includes(tokens[at].text)) depth += 1
    if (CLOSING.includes(tokens[at].text)) depth -= 1
    if (depth === 0) return at
  }
  return tokens.length - 1
}

/** The place of the keyword of the item that begins at this place. */
function keywordOf(tokens, start) {
  let at = start
  if (tokens[at]?.text === 'pub') at = tokens[at + 1]?.text === '(' ? closing(tokens, at + 1) + 1 : at + 1
  while (MODIFIERS.has(tokens[at]?.text)) {
    const next = tokens[at + 1]?.text
    const isModifier = MODIFIERS.has(next) || next === 'fn' || next === 'impl' || next === 'trait' || next?.endsWith('"')
    if (!isModifier) break
    at += next.endsWith('"') ? 2 : 1
  }
  return at
}

/** The place behind the item that begins at this place. */
function endOfItem(tokens, start) {
  const isStatement = STATEMENTS.has(tokens[keywordOf(tokens, start)]?.text)
  for (let at = start; at < tokens.length; at += 1) {
    const { text } = tokens[at]
    if (text === ';') return at + 1
    if (OPENING.includes(text)) {
      at = closing(tokens, at)
      if (text === '{' && !isStatement) return at + 1
    }
  }
  return tokens.length
}
