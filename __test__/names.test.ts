/** The name of a type that files share means one thing, in each language (docs/glossary.md). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** The declaration of each name in the files below some folders; `declaration` has the name as its first group. */
function declared(folders: string[], ending: string, declaration: RegExp): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const folder of folders) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith(ending)) continue
      const path = join(folder, name)
      for (const [, type = ''] of readFileSync(join(ROOT, path), 'utf8').matchAll(declaration)) {
        found.set(type, [...(found.get(type) ?? []), path])
      }
    }
  }
  return found
}

/** The names that are declared twice, but for those that may be. */
function twice(found: Map<string, string[]>, may: readonly string[]): [string, string[]][] {
  return [...found].filter(([name, places]) => places.length > 1 && !may.includes(name))
}

test('Rust: types that are visible outside their module', () => {
  const found = declared(
    readdirSync(join(ROOT, 'crates')).map((crate) => `crates/${crate}/src`),
    '.rs',
    /^pub(?:\([a-z: ]*\))? (?:struct|enum|trait|type) (\w+)/gm,
  )
  expect(found.size).toBeGreaterThan(300)
  // Each crate has the result type of its errors.
  expect(twice(found, ['Result'])).toEqual([])
})

test('TypeScript: types that are exported', () => {
  const found = declared(['lib', 'extensions'], '.ts', /^export (?:abstract )?(?:class|interface|type|enum) (\w+)/gm)
  expect(found.size).toBeGreaterThan(200)
  // The storage of tool outputs is a separate system, whose class has the name that the specification gives it.
  expect(twice(found, ['ContextManager'])).toEqual([])
})
