/**
 * Finds code that takes the text for the model apart by itself: `node scripts/own-lines.mjs` fails where TypeScript has a regular
 * expression, or a search in a text, over one of our lines, or writes one. `crates/lines` has their grammar, and lib/lines offers it.
 *
 * Tests compare what they see with lines as these are written there, so they are left out.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from '@swc/core'

/** The parts of our lines by which code would recognize one. */
const OURS =
  /toolcall_ref|file_ref|chat_ref |ACTIVE_CONTENT|\[collapsed|more chars|said: |stale \w+=|changed since|\btype=(?:file|toolcall)|\btool=|\bstatus=|(?:^|[^\w.-]|\\b)id=/

/** The beginnings of our lines, in code that writes one. */
const WRITTEN = /^(?:toolcall_ref |id=|ACTIVE_CONTENT |\[collapsed #|said: |stale )/

/** The methods that look for their argument in a text. */
const SEARCHES = new Set(['startsWith', 'endsWith', 'includes', 'indexOf', 'lastIndexOf', 'split', 'match', 'matchAll', 'replace', 'replaceAll', 'search'])

const root = fileURLToPath(new URL('..', import.meta.url))

/** The code that is searched: all but tests, and scripts such as this. */
function isSearched(path) {
  return /^(?:lib|extensions|rig|demo|lab|benches|examples)\/.*\.(?:ts|mjs)$/.test(path) && !path.endsWith('.d.ts')
}

/** The texts of a file by which it recognizes or writes one of our lines. `code` is TypeScript. */
export function ownLines(code) {
  const found = []
  visit(parseSync(code, { syntax: 'typescript', target: 'esnext' }), false, found)
  return found
}

/** `isSought`: the node is an argument of a search in a text. */
function visit(node, isSought, found) {
  if (Array.isArray(node)) {
    for (const one of node) visit(one, isSought, found)
    return
  }
  if (typeof node !== 'object' || node === null) return
  if (node.type === 'RegExpLiteral') {
    if (OURS.test(node.pattern)) found.push(`/${node.pattern}/`)
    return
  }
  const text = textOf(node)
  if (text !== undefined && (isSought ? OURS.test(text) : WRITTEN.test(text))) found.push(text)
  const seeks = isSearch(node)
  for (const [name, child] of Object.entries(node)) {
    // An argument is an expression in an object without a type.
    visit(child, name === 'arguments' ? seeks : node.type === undefined && isSought, found)
  }
}

/** The text of a literal, where `${}` represents what is put in; undefined for anything else. */
function textOf({ type, value, quasis }) {
  if (type === 'StringLiteral') return value
  return type === 'TemplateLiteral' ? quasis.map(({ cooked }) => cooked).join('${}') : undefined
}

/** True if a call looks for its argument in a text, or makes a pattern of it. */
function isSearch({ type, callee }) {
  if (type === 'NewExpression') return callee.value === 'RegExp'
  return type === 'CallExpression' && (callee.value === 'RegExp' || SEARCHES.has(callee.property?.value))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split('\0')
  let count = 0
  for (const path of files.filter(isSearched)) {
    let code
    try {
      code = readFileSync(new URL(path, new URL('..', import.meta.url)), 'utf8')
    } catch {
      continue // Removed, and not committed yet.
    }
    for (const text of ownLines(code)) {
      console.error(`${path}: ${text}`)
      count += 1
    }
  }
  if (count > 0) console.error('lib/lines reads and writes our lines; their grammar is in crates/lines')
  process.exitCode = count > 0 ? 1 : 0
}
