/** docs/spec.md names code and tests: all of them exist, and no row is without them. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = readFileSync(join(root, 'docs/spec.md'), 'utf8')
const reliability = readFileSync(join(root, 'docs/reliability.md'), 'utf8')

/** The rows of the tables below a heading, without their heads. */
function rows(heading: RegExp, text = page): string[][] {
  const part = text.split(/^## /m).find((text) => heading.test(text))!
  const lines = part.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** The crates whose files the pages name by their path below `src`. */
const CRATES = readdirSync(join(root, 'crates'))

function source(path: string): string {
  const [crate, ...rest] = path.split('/')
  return CRATES.includes(crate!) ? join(root, 'crates', crate!, 'src', ...rest) : join(root, path)
}

/** The files that can have the tests of a suite. */
function suite(name: string): string[] {
  const [first, ...rest] = name.split('/')
  const below = rest.join('/')
  switch (first) {
    case 'engine':
      return [join(root, `crates/engine/tests/engine/${below}.rs`)]
    case 'simulation':
      return [join(root, `crates/engine/tests/simulation/${below}.rs`)]
    case 'lines':
    case 'model':
    case 'store':
    case 'store-sqlite':
    case 'store-xtdb':
    case 'tools':
      return inCrate(first, below)
    case 'conformance':
      return [join(root, `crates/store/src/conformance/${below}.rs`)]
    case 'secrets':
    case 'watch':
      return below === '' ? [join(root, `__test__/${first}.test.ts`)] : inCrate(first, below)
    default:
      return [join(root, `__test__/${name}.test.ts`)]
  }
}

/** A suite of a crate: a test program, or a module of one that has several. */
function inCrate(crate: string, suite: string): string[] {
  return ['', 'memory/', 'real/', 'store/', 'watch/'].map((program) => join(root, `crates/${crate}/tests/${program}${suite}.rs`))
}

/** `suite: name; suite: name`, where a title may also hold a semicolon. */
function tests(cell: string): { suite: string; name: string }[] {
  return cell.split(/; (?=[a-z_/-]+: )/).map((reference) => {
    const [, suite, name] = /^([a-z_/-]+): (.+)$/.exec(reference)!
    return { suite: suite!, name: name! }
  })
}

describe.each([
  ['1.4 Invariants', /^1\.4 /],
  ['2 Data model', /^2 /],
  ['3 Sessions', /^3 /],
  ['4 Context assembly', /^4 /],
  ['5 Clients, sources and tracking', /^5 /],
  ['6.3 and 7.4 Isolation and deployment', /^6\.3 /],
  ['the test list', /^The test list/],
  ['what must not go wrong', /^What must not/],
])('%s', (_, heading) => {
  test.each(rows(heading))('%s', (...cells) => {
    expect(cells.every((cell) => cell !== '')).toBe(true)
    const paths = cells.length === 3 ? [...cells[1]!.matchAll(/`([^`]+)`/g)].map((match) => match[1]!) : []
    if (cells.length === 3) expect(paths).not.toEqual([])
    for (const path of paths) expect(existsSync(source(path)), path).toBe(true)
    const references = tests(cells.at(-1)!)
    for (const { suite: name, name: title } of references) {
      const found = suite(name).some((path) => existsSync(path) && readFileSync(path, 'utf8').includes(title))
      expect(found, `${name}: ${title}`).toBe(true)
    }
  })
})

describe('docs/reliability.md', () => {
  const all = rows(/^The tests/, reliability)

  test('has a row for each demand', () => {
    expect(all.map(([number]) => number)).toEqual(Array.from({ length: 31 }, (_, n) => `R${n + 1}`))
  })

  test.each(all)('%s', (...cells) => {
    expect(cells).toHaveLength(5)
    expect(cells.every((cell) => cell !== '')).toBe(true)
    for (const { suite: name, name: title } of tests(cells[2]!)) {
      const found = suite(name).some((path) => existsSync(path) && readFileSync(path, 'utf8').includes(title))
      expect(found, `${name}: ${title}`).toBe(true)
    }
  })
})

test('every suite of the engine is named', () => {
  const files = readdirSync(join(root, 'crates/engine/tests/engine')).filter((file) => file.endsWith('.rs'))
  const suites = files.map((file) => file.replace('.rs', ''))
  const named = new Set([...`${page}${reliability}`.matchAll(/engine\/([a-z]+): /g)].map((match) => match[1]!))
  const others = ['main', 'bench', 'chat', 'stepped', 'restore', 'forms', 'edits', 'harness']
  expect(suites.filter((suite) => !named.has(suite) && !others.includes(suite))).toEqual([])
})
