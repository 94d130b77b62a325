/** The tasks: small pieces of real work on scratch repositories in plain JavaScript. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { calls } from '../../rig/reply.ts'
import { random } from '../../rig/random.ts'
import type { Reply } from '../../rig/reply.ts'
import type { Task, TaskMaker } from './task.ts'

const NAMES = ['amber', 'birch', 'cedar', 'delta', 'ember', 'flint', 'grove', 'heron', 'ivory', 'jade'] as const

/** A module of functions that add a constant, with one of them changed. */
function moduleText(name: string, functions: number, offset: number, wrong?: number): string {
  const lines = [`// Steps of ${name}. Each step adds its own constant to the value.`, '']
  for (let index = 0; index < functions; index += 1) {
    const sign = index === wrong ? '-' : '+'
    lines.push(
      `/** Step ${index} of ${name}: adds ${offset + index} to the value. */`,
      `export function ${name}Step${index}(value) {`,
      `  if (typeof value !== 'number') throw new TypeError('${name}Step${index} takes a number')`,
      `  return value ${sign} ${offset + index}`,
      '}',
      '',
    )
  }
  return lines.join('\n')
}

/** Checks every step of every module and prints a line for each, as a test runner does. */
function checkText(modules: readonly { name: string; functions: number; offset: number }[]): string {
  const imports = modules.map(({ name }) => `import * as ${name} from './src/${name}.mjs'`).join('\n')
  const table = JSON.stringify(modules)
  return `${imports}
const modules = { ${modules.map(({ name }) => name).join(', ')} }
let failed = 0
for (const { name, functions, offset } of ${table}) {
  for (let index = 0; index < functions; index += 1) {
    const step = modules[name][name + 'Step' + index]
    const found = step(1000)
    const expected = 1000 + offset + index
    if (found === expected) console.log('ok   ' + name + 'Step' + index + '(1000) is ' + found)
    else { failed += 1; console.log('FAIL ' + name + 'Step' + index + '(1000) is ' + found + ', expected ' + expected) }
  }
}
console.log(failed === 0 ? 'all steps are right' : failed + ' failed')
process.exitCode = failed === 0 ? 0 : 1
`
}

function passes(folder: string): string | undefined {
  try {
    execFileSync(process.execPath, ['check.mjs'], { cwd: folder, stdio: 'pipe', timeout: 30_000 })
    return undefined
  } catch {
    return 'check.mjs fails'
  }
}

function said(text: string): Reply {
  return { text }
}

function edit(path: string, oldText: string, newText: string): [name: string, args: object] {
  return ['edit', { path, edits: [{ oldText, newText }] }]
}

/** One wrong sign among many functions. */
const repair: TaskMaker = (seed) => {
  const { below, pick } = random(seed)
  const modules = NAMES.slice(0, 5).map((name) => ({ name, functions: 24, offset: 10 + below(80) }))
  const broken = pick(modules)
  const wrong = below(broken.functions)
  const path = `src/${broken.name}.mjs`
  const constant = broken.offset + wrong
  return {
    name: 'repair',
    files: {
      ...sources(modules, (module) => (module === broken ? wrong : undefined)),
      'check.mjs': checkText(modules),
    },
    prompts: ['`node check.mjs` fails. Find out why and repair the module; do not change check.mjs.'],
    judge: passes,
    script: [
      [
        calls(['bash', { command: 'node check.mjs' }]),
        calls(['read', { path }]),
        calls(edit(path, `return value - ${constant}`, `return value + ${constant}`)),
        calls(['bash', { command: 'node check.mjs' }]),
        said('One step subtracted its constant. It adds it now, and the check passes.'),
      ],
    ],
  }
}

/** A line in a long log, and an answer in a file. */
const search: TaskMaker = (seed) => {
  const { below, pick } = random(seed)
  const culprit = `req-${below(900_000) + 100_000}`
  const at = 1500 + below(800)
  const lines = Array.from({ length: 3000 }, (_, index) => {
    const id = index === at ? culprit : `req-${below(900_000) + 100_000}`
    const end = index === at ? 'status=500 cause="pool exhausted"' : `status=200 ms=${below(90)}`
    return `2026-03-0${1 + (index % 9)}T10:${String(index % 60).padStart(2, '0')}:00Z gateway ${id} ${pick(NAMES)} ${end}`
  })
  return {
    name: 'search',
    files: {
      'gateway.log': `${lines.join('\n')}\n`,
      'README.md': '# Gateway\n\nOne line a request in gateway.log.\n',
    },
    prompts: [
      'Exactly one request in gateway.log failed. Write its request id, and nothing else, into culprit.txt.',
      'Which cause did the log give for it? Write the text between the quotes into cause.txt.',
    ],
    judge: (folder) => holds(folder, 'culprit.txt', culprit) ?? holds(folder, 'cause.txt', 'pool exhausted'),
    script: [
      [
        calls(['bash', { command: 'cat gateway.log' }]),
        calls(['bash', { command: "grep -n 'status=500' gateway.log" }]),
        calls(['write', { path: 'culprit.txt', content: `${culprit}\n` }]),
        said(`The request ${culprit} failed; it is in culprit.txt.`),
      ],
      [
        calls(['bash', { command: "grep -o 'cause=.*' gateway.log" }]),
        calls(['write', { path: 'cause.txt', content: 'pool exhausted\n' }]),
        said('The pool was exhausted; cause.txt says so.'),
      ],
    ],
  }
}

/** One name in many files. */
const rename: TaskMaker = (seed) => {
  const { below } = random(seed)
  const modules = NAMES.slice(0, 6).map((name) => ({ name, functions: 16, offset: 10 + below(80) }))
  const old = 'legacyRound'
  const files: Record<string, string> = {
    ...sources(modules, () => undefined),
    'check.mjs': checkText(modules),
    'src/round.mjs': `export function ${old}(value) {\n  return Math.round(value)\n}\n`,
  }
  for (const { name } of modules) {
    const path = `src/${name}.mjs`
    files[path] =
      `import { ${old} } from './round.mjs'\n${files[path]}\n/** The last value of ${name}, rounded. */\nexport const ${name}Last = ${old}(${name}Step0(0.4))\n`
  }
  const paths = ['src/round.mjs', ...modules.map(({ name }) => `src/${name}.mjs`)]
  return {
    name: 'rename',
    files,
    prompts: [
      `Rename ${old} to roundValue everywhere in src, and make sure that \`node check.mjs\` still passes.`,
      'Now list, in renamed.txt, every file that you changed, one path a line, sorted.',
    ],
    judge: (folder) => {
      for (const path of paths) if (readFileSync(join(folder, path), 'utf8').includes(old)) return `${path} still has ${old}`
      return passes(folder) ?? holds(folder, 'renamed.txt', [...paths].sort().join('\n'))
    },
    script: [
      [
        calls(['bash', { command: `grep -rn ${old} src` }]),
        ...modules.map(({ name }) => calls(['read', { path: `src/${name}.mjs` }])),
        calls(
          edit('src/round.mjs', `function ${old}(`, 'function roundValue('),
          ...modules.flatMap(({ name }) => [edit(`src/${name}.mjs`, `import { ${old} }`, 'import { roundValue }')]),
        ),
        calls(...modules.map(({ name }) => edit(`src/${name}.mjs`, `${name}Last = ${old}(`, `${name}Last = roundValue(`))),
        calls(['bash', { command: 'node check.mjs' }]),
        said('The function is called roundValue now, in all seven files.'),
      ],
      [calls(['write', { path: 'renamed.txt', content: `${[...paths].sort().join('\n')}\n` }]), said('renamed.txt lists the seven files.')],
    ],
  }
}

/** Many rounds of reading, changing and checking: the kind of session that fills a context. */
const series: TaskMaker = (seed) => {
  const { below } = random(seed)
  const modules = NAMES.slice(0, 8).map((name) => ({ name, functions: 30, offset: 10 + below(80) }))
  const rounds = modules.map((module) => ({ ...module, step: below(module.functions) }))
  const guard = (name: string, step: number): string => `if (!Number.isFinite(value)) throw new RangeError('${name}Step${step} takes a finite number')`
  return {
    name: 'series',
    files: { ...sources(modules, () => undefined), 'check.mjs': checkText(modules) },
    prompts: rounds.map(
      ({ name, step }) =>
        `In ${name}, step ${step} must refuse numbers that are not finite: throw a RangeError with the message "${name}Step${step} takes a finite number". Keep \`node check.mjs\` passing.`,
    ),
    judge: (folder) => {
      for (const { name, step } of rounds) {
        if (!readFileSync(join(folder, `src/${name}.mjs`), 'utf8').includes(`${name}Step${step} takes a finite number`))
          return `${name}Step${step} has no guard`
      }
      return passes(folder)
    },
    script: rounds.map(({ name, step }) => {
      const path = `src/${name}.mjs`
      const line = `  if (typeof value !== 'number') throw new TypeError('${name}Step${step} takes a number')\n`
      return [
        calls(['read', { path }]),
        calls(edit(path, line, `${line}  ${guard(name, step)}\n`)),
        calls(['bash', { command: 'node check.mjs' }]),
        calls(['read', { path }]),
        said(`Step ${step} of ${name} refuses what is not finite.`),
      ]
    }),
  }
}

/** All tasks, in the order of the report. */
export const TASKS: readonly TaskMaker[] = [repair, search, rename, series]

function sources(
  modules: readonly { name: string; functions: number; offset: number }[],
  wrong: (module: { name: string; functions: number; offset: number }) => number | undefined,
): Record<string, string> {
  return Object.fromEntries(modules.map((module) => [`src/${module.name}.mjs`, moduleText(module.name, module.functions, module.offset, wrong(module))]))
}

function holds(folder: string, name: string, text: string): string | undefined {
  const path = join(folder, name)
  if (!existsSync(path)) return `${name} is missing`
  const found = readFileSync(path, 'utf8').trim()
  return found === text ? undefined : `${name} says ${JSON.stringify(found.slice(0, 60))}`
}

/** The tasks with these names; all of them where none is given. Throws a sentence for an unknown one. */
export function tasksNamed(names: readonly string[] | undefined, seed: number): Task[] {
  const all = TASKS.map((make) => make(seed))
  if (names === undefined) return all
  return names.map((name) => {
    const task = all.find((one) => one.name === name)
    if (task === undefined) throw new Error(`unknown task "${name}"; known are ${all.map((one) => one.name).join(', ')}`)
    return task
  })
}
