/** The check for import circles, on small projects. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, onCleanUp } from './rig/cleanup.ts'

afterEach(cleanUp)

const PROGRAM = fileURLToPath(new URL('../scripts/circles.mjs', import.meta.url))

type Files = Record<string, string>

/** Runs the check over a project of these files. */
function check(files: Files): { status: number | null; output: string; error: string } {
  const root = mkdtempSync(join(tmpdir(), 'circles-'))
  onCleanUp(() => rmSync(root, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, root], { encoding: 'utf8' })
  return { status, output: stdout, error: stderr }
}

/** The imports of all circles that were found, without the names of what is imported. */
function steps(output: string): string[] {
  const lines = output.matchAll(/^ {2}(\S+) imports .* from (\S+)$/gm)
  return [...lines].map(([, from, to]) => `${from} ${to}`)
}

const circles: [string, Files, string[]][] = [
  [
    'values',
    { 'lib/a.ts': "import { b } from './b.ts'\nexport const a = b", 'lib/b.ts': "\nimport { a } from './a.ts'\nexport const b = () => a" },
    ['lib/a.ts:1 lib/b.ts', 'lib/b.ts:2 lib/a.ts'],
  ],
  [
    'types, over several lines',
    {
      'lib/a.ts': "import type {\n  B,\n} from './sub/b.js'\nexport type A = B",
      'lib/sub/b.ts': "import type { A } from '../a.ts'\nexport type B = A[]",
    },
    ['lib/a.ts:1 lib/sub/b.ts', 'lib/sub/b.ts:1 lib/a.ts'],
  ],
  [
    'passed on, loaded later, and for its effect',
    {
      'extensions/a.ts': "export * from './b.ts'",
      'extensions/b.ts': "export const b = () => import('./c.ts')",
      'extensions/c.ts': "import './a.ts'",
    },
    ['extensions/a.ts:1 extensions/b.ts', 'extensions/b.ts:1 extensions/c.ts', 'extensions/c.ts:1 extensions/a.ts'],
  ],
  [
    'between the folders',
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

test('comments, texts and packages make no circle', () => {
  const { status, output } = check({
    'lib/a.ts': "import { b } from './b.ts'\nexport const a = b",
    'lib/b.ts': "// import { a } from './a.ts'\n/* import './a.ts' */\nimport a from 'a.ts'\nimport type { c } from '../index.js'\nexport const b = \"import './a.ts'\"",
  })
  expect({ status, output }).toEqual({ status: 0, output: '2 files of TypeScript with 0 circles\n' })
})

test('of many, the shortest through each file is printed, each once', () => {
  const { output } = check({
    'lib/a.ts': "import './b.ts'",
    'lib/b.ts': "import './c.ts'\nimport './d.ts'",
    'lib/c.ts': "import './d.ts'",
    'lib/d.ts': "import './a.ts'",
  })
  const [short, long] = output.split('\n\n')
  expect([steps(short!).length, steps(long!).length]).toEqual([3, 4])
  expect(output).toContain('lib/b.ts:2 imports all from lib/d.ts')
})

test('where there is nothing to check, it fails', () => {
  expect(check({ 'README.md': '' }).status).toBe(1)
})
