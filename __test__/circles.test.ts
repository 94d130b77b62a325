/** The check for import circles, on small crates and folders with and without a circle. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp, onCleanUp } from './rig/cleanup.ts'

afterEach(cleanUp)

const PROGRAM = fileURLToPath(new URL('../scripts/circles.mjs', import.meta.url))

type Files = Record<string, string>

/** Runs the check over a project of these files. */
function check(files: Files, ...options: string[]): { status: number | null; output: string; error: string } {
  const root = mkdtempSync(join(tmpdir(), 'circles-'))
  onCleanUp(() => rmSync(root, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...options, root], { encoding: 'utf8' })
  return { status, output: stdout, error: stderr }
}

/** The imports of all circles that were found, without the names of what is imported. */
function steps(output: string): string[] {
  const lines = output.matchAll(/^ {2}(\S+) imports .* from (\S+)$/gm)
  return [...lines].map(([, from, to]) => `${from} ${to}`)
}

/** A crate of these files below `crates/c/src`. */
function crate(files: Files): Files {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`crates/c/src/${name}`, text]))
}

const ROOT = 'mod a;\nmod b;\n'
const A = 'crates/c/src/a.rs'
const B = 'crates/c/src/b.rs'

const circles: [string, Files, string[]][] = [
  [
    'use crate',
    crate({
      'lib.rs': ROOT,
      'a.rs': '//! A.\nuse crate::b::B;\npub struct A(B);',
      'b.rs': '\n\nuse crate::a::A;\npub struct B(Box<A>);',
    }),
    [`${A}:2 ${B}`, `${B}:3 ${A}`],
  ],
  [
    'use super',
    crate({ 'lib.rs': ROOT, 'a.rs': 'use super::b::B;\npub struct A(B);', 'b.rs': 'use super::a::A;\npub struct B(Box<A>);' }),
    [`${A}:1 ${B}`, `${B}:1 ${A}`],
  ],
  [
    'paths in the code',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'pub fn a() {\n  let x = 1;\n  crate::b::b()\n}',
      'b.rs': 'pub fn b() { if false { super::a::a() } }',
    }),
    [`${A}:3 ${B}`, `${B}:1 ${A}`],
  ],
  [
    'a path by a module that was imported',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use crate::b;\npub fn a() { b::b() }',
      'b.rs': 'use crate::a as other;\npub fn b() { loop { other::a() } }',
    }),
    [`${A}:2 ${B}`, `${B}:2 ${A}`],
  ],
  [
    'names that the parent passes on',
    crate({
      'lib.rs': 'mod a;\nmod b;\npub use a::A;\npub use b::*;',
      'a.rs': 'use crate::B;\npub struct A(B);',
      'b.rs': 'use crate::{A as Other};\npub struct B(Box<Other>);',
    }),
    [`${A}:1 ${B}`, `${B}:1 ${A}`],
  ],
  [
    'names that come by a star',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use super::b::*;\npub struct A(Option<B>);',
      'b.rs': 'use super::*;\nuse a::A;\npub enum B { One(Box<A>) }',
    }),
    [`${A}:2 ${B}`, `${B}:2 ${A}`],
  ],
  [
    'variants that come by a star',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use super::b::B::*;\npub fn a() { match 1 { _ => One } }',
      'b.rs': 'pub enum B { One }\npub fn b() { crate::a::a() }',
    }),
    [`${A}:1 ${B}`, `${B}:2 ${A}`],
  ],
  [
    'a tree of names over several lines, in a function',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'pub const fn a() {\n  use crate::{\n    b::{self, Two},\n  };\n}',
      'b.rs': 'pub struct Two;\npub unsafe extern "C" fn b() { crate::a::a() }',
    }),
    [`${A}:3 ${B}`, `${B}:2 ${A}`],
  ],
  [
    'a parent and its child',
    crate({
      'lib.rs': 'mod a;',
      'a.rs': 'mod below;\npub struct Shared(u8);\nfn run() { below::go(Shared(1)) }',
      'a/below.rs': 'use super::Shared;\npub fn go(shared: Shared) {}',
    }),
    [`${A}:3 crates/c/src/a/below.rs`, `crates/c/src/a/below.rs:1 ${A}`],
  ],
  [
    'a parent that uses what it passes on',
    crate({
      'lib.rs': 'mod a;',
      'a/mod.rs': 'mod below;\npub use below::Below;\npub struct Shared(Box<Below>);',
      'a/below.rs': 'pub struct Below(super::Shared);',
    }),
    ['crates/c/src/a/below.rs:1 crates/c/src/a/mod.rs', 'crates/c/src/a/mod.rs:2 crates/c/src/a/below.rs'],
  ],
  [
    'three files',
    crate({
      'lib.rs': 'mod a;\nmod b;\nmod c;',
      'a.rs': 'use crate::b::B;\npub type A = B;',
      'b.rs': 'use crate::c::C;\npub type B = C;',
      'c.rs': 'pub static C: Option<crate::a::A> = None;',
    }),
    [`${A}:1 ${B}`, `${B}:1 crates/c/src/c.rs`, `crates/c/src/c.rs:1 ${A}`],
  ],
  [
    'a module in a file',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'pub mod inner {\n  pub fn a() { crate::b::b() }\n}',
      'b.rs': "pub fn b() -> [u8; 3] { let c = '{'; let r = r#\"}\"#; crate::a::inner::a() }",
    }),
    [`${A}:2 ${B}`, `${B}:1 ${A}`],
  ],
  [
    'the macro of a module',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'macro_rules! make { () => { $crate::b::b() } }\npub(crate) use make;',
      'b.rs': 'pub fn b() { crate::a::make!() }',
    }),
    [`${A}:1 ${B}`, `${B}:1 ${A}`],
  ],
  [
    'the crate at the top',
    { 'src/lib.rs': ROOT, 'src/a.rs': 'use crate::b::B;\npub struct A(B);', 'src/b.rs': 'pub struct B(crate::a::A);' },
    ['src/a.rs:1 src/b.rs', 'src/b.rs:1 src/a.rs'],
  ],
  [
    'TypeScript: values',
    { 'lib/a.ts': "import { b } from './b.ts'\nexport const a = b", 'lib/b.ts': "\nimport { a } from './a.ts'\nexport const b = () => a" },
    ['lib/a.ts:1 lib/b.ts', 'lib/b.ts:2 lib/a.ts'],
  ],
  [
    'TypeScript: types, over several lines',
    {
      'lib/a.ts': "import type {\n  B,\n} from './sub/b.js'\nexport type A = B",
      'lib/sub/b.ts': "import type { A } from '../a.ts'\nexport type B = A[]",
    },
    ['lib/a.ts:1 lib/sub/b.ts', 'lib/sub/b.ts:1 lib/a.ts'],
  ],
  [
    'TypeScript: passed on, loaded later, and for its effect',
    {
      'extensions/a.ts': "export * from './b.ts'",
      'extensions/b.ts': "export const b = () => import('./c.ts')",
      'extensions/c.ts': "import './a.ts'",
    },
    ['extensions/a.ts:1 extensions/b.ts', 'extensions/b.ts:1 extensions/c.ts', 'extensions/c.ts:1 extensions/a.ts'],
  ],
  [
    'TypeScript: between the folders',
    { 'lib/a.ts': "import '../extensions/b.ts'", 'extensions/b.ts': "import '../lib/a.ts'" },
    ['extensions/b.ts:1 lib/a.ts', 'lib/a.ts:1 extensions/b.ts'],
  ],
]

test.each(circles)('a circle is found: %s', (_, files, expected) => {
  const { status, output, error } = check(files)
  expect(error).toBe('')
  expect(steps(output).sort()).toEqual([...expected].sort())
  expect(status).toBe(1)
})

const clean: [string, Files][] = [
  [
    'a parent that only passes names on',
    crate({
      'lib.rs': 'mod a;\npub use a::{A, B};\npub(crate) mod shared { pub use crate::a::A; }',
      'a.rs': 'mod one;\nmod two;\npub use one::A;\npub use two::*;',
      'a/one.rs': 'pub struct A;',
      'a/two.rs': 'use super::A;\npub struct B(A);',
    }),
  ],
  [
    'tests, in the file and beside it',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use crate::b::B;\npub struct A(B);\n#[cfg(test)]\nmod a_tests;',
      'a/a_tests.rs': 'use crate::b::wrong;',
      'b.rs': 'pub struct B;\n#[cfg(test)]\n#[path = "b_tests.rs"]\nmod tests;\n#[cfg(all(test, unix))]\nuse crate::a::A;\n#[cfg(test)]\nmod more { use crate::a::A; fn f() { super::super::a::A; } }',
      'b_tests.rs': 'use crate::a::A;',
    }),
  ],
  [
    'comments, texts, lifetimes and characters',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use crate::b::B;\npub struct A<\'a>(&\'a B);',
      'b.rs': '//! See [`crate::a::A`].\n/* use /* crate::a::A; */ crate::a::A; */\npub struct B;\nconst T: &str = "\\"use crate::a::A;";\nconst R: &str = r#"" crate::a::A "#;\nconst C: char = \'"\';\nfn f<\'a>() { \'a: loop { break \'a } } // crate::a::A',
    }),
  ],
  [
    'another crate, a field and a method with the name of a module',
    crate({
      'lib.rs': ROOT,
      'a.rs': 'use crate::b::B;\npub struct A(B);',
      'b.rs': 'use other::a::A;\npub struct B { a: u8 }\nimpl B { fn a(&self) -> u8 { self.a.max(other::a()) } }\nfn f() -> impl Fn() + use<> {}',
    }),
  ],
  [
    'a module in whose child the name is',
    crate({
      'lib.rs': 'pub mod a;\npub mod b;',
      'a.rs': 'pub mod inner;\npub fn a() { crate::b::b() }',
      'a/inner.rs': 'pub fn inner() {}',
      'b.rs': 'pub fn b() { crate::a::inner::inner() }',
    }),
  ],
  [
    'TypeScript: comments, texts and packages',
    {
      'lib/a.ts': "import { b } from './b.ts'\nexport const a = b",
      'lib/b.ts': "// import { a } from './a.ts'\n/* import './a.ts' */\nimport a from 'a.ts'\nimport type { c } from '../index.js'\nexport const b = \"import './a.ts'\"",
    },
  ],
]

test.each(clean)('there is none: %s', (_, files) => {
  const { status, output, error } = check(files)
  expect([error, steps(output), status]).toEqual(['', [], 0])
  expect(output).toMatch(/^\d files in \d crates and folders, 0 circles\n$/)
})

describe('of many', () => {
  const files = crate({
    'lib.rs': 'mod a;\nmod b;\nmod c;\nmod d;',
    'a.rs': 'use crate::b::B;\npub struct A;',
    'b.rs': 'use crate::c::C;\nuse crate::d::D;\npub struct B;',
    'c.rs': 'use crate::d::D;\npub struct C;',
    'd.rs': 'use crate::a::A;\npub struct D;',
  })

  test('the shortest through each file is printed, each once', () => {
    const { output } = check(files)
    expect(output.split('\n')).toContain('crates/c/src: 2 circles')
    const [short, long] = output.split('\n\n')
    expect([steps(short!).length, steps(long!).length]).toEqual([3, 4])
    expect(output).toContain('crates/c/src/b.rs:2 imports crate::d::D from crates/c/src/d.rs')
  })

  test('a folder can be left out, and must be there', () => {
    expect(check({ ...files, 'lib/a.ts': '' }, '--without', 'crates/c').status).toBe(0)
    const missing = check(files, '--without', 'crates/other')
    expect([missing.status, missing.error]).toEqual([1, expect.stringContaining('there is no such folder')])
  })

  test('where there is nothing to check, it fails', () => {
    expect(check({ 'README.md': '' }).status).toBe(1)
  })
})
