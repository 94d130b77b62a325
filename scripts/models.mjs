/**
 * Writes lib/models/table.ts from models.toml: `node scripts/models.mjs`. `--check` fails where the file differs, and both fail
 * with a sentence for each row that lacks a field or has one that means nothing. `--table FILE` reads another table.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'smol-toml'

const source = process.argv.includes('--table') ? process.argv[process.argv.indexOf('--table') + 1] : new URL('../models.toml', import.meta.url)
const target = new URL('../lib/models/table.ts', import.meta.url)

const FAMILIES = ['claude', 'gpt', 'gemini', 'grok', 'deepseek', 'kimi', 'glm', 'qwen', 'minimax', 'mistral']
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0
const isPositive = (value) => isNumber(value) && value > 0
const isText = (value) => typeof value === 'string' && value !== ''
const oneOf =
  (...values) =>
  (value) =>
    values.includes(value)
const listOf =
  (isRight, ...lengths) =>
  (value) =>
    Array.isArray(value) && value.every(isRight) && (lengths.length === 0 || lengths.includes(value.length))
const isPattern = (value) => {
  try {
    new RegExp(value)
    return isText(value)
  } catch {
    return false
  }
}

/** The fields of a row: whether it must have each, and how a right value looks. */
const KINDS = {
  unknown: { read: [true, isPositive], write: [true, isPositive] },
  windows: { usual: [true, isPositive], long: [true, isPositive] },
  cache: {
    kind: [true, oneOf('breakpoints', 'endings', 'prefix')],
    lookback: [false, isPositive],
    minimum: [true, isNumber],
    minutes: [true, isPositive],
    long: [false, (value) => isPositive(value?.minutes) && isPositive(value?.write)],
  },
  rule: {
    family: [true, oneOf(...FAMILIES)],
    tiers: [false, listOf((tier) => typeof tier === 'string')],
    since: [false, isNumber],
    chat: [false, oneOf(true, false)],
    except: [false, isText],
    binding: [false, oneOf('none', 'keeps', 'drops', 'refuses')],
    textIsReasoning: [false, oneOf(true)],
    wantsAnswer: [false, oneOf(true)],
    reasoning: [false, oneOf('free', 'turn', 'calls', 'items', 'signatures')],
    cache: [false, (name) => Object.hasOwn(table.caches ?? {}, name)],
    open: [false, listOf(isText)],
  },
  model: {
    family: [true, oneOf(...FAMILIES)],
    name: [true, isPattern],
    since: [true, isNumber],
    prices: [false, listOf(isNumber, 3, 4)],
    step: [false, (name) => Object.hasOwn(table.steps ?? {}, name)],
    window: [false, isPositive],
  },
}

const problems = []

function checked(kind, where, row) {
  const fields = KINDS[kind]
  for (const [name, [isNeeded, isRight]] of Object.entries(fields)) {
    if (row?.[name] === undefined) {
      if (isNeeded) problems.push(`${where} lacks "${name}"`)
    } else if (!isRight(row[name])) problems.push(`${where}: ${name} can't be ${JSON.stringify(row[name])}`)
  }
  for (const name of Object.keys(row ?? {})) if (!Object.hasOwn(fields, name)) problems.push(`${where} has no field "${name}"`)
  return row
}

const table = parse(readFileSync(source, 'utf8'))
checked('unknown', '[unknown]', table.unknown)
checked('windows', '[windows]', table.windows)
for (const [name, cache] of Object.entries(table.caches ?? {})) {
  checked('cache', `caches.${name}`, cache)
  if ((cache.kind === 'prefix') !== (cache.lookback === undefined))
    problems.push(`caches.${name}: ${cache.kind === 'prefix' ? 'a common prefix has no' : `${cache.kind} need a`} lookback`)
}
for (const [name, step] of Object.entries(table.steps ?? {}))
  if (!listOf(isPositive, 3)(step)) problems.push(`steps.${name} is three numbers: tokens, factor, factor of the output`)
for (const [name, window] of Object.entries(table.families ?? {})) {
  if (!FAMILIES.includes(name) || !isPositive(window)) problems.push(`families.${name} is a known family's window in tokens`)
}
for (const [at, rule] of (table.rules ?? []).entries()) checked('rule', `rule ${at + 1} (${rule.family})`, rule)
const models = table.catalogue?.models ?? []
for (const [at, model] of models.entries()) {
  const where = `model ${at + 1} (${model.family} ${model.name})`
  checked('model', where, model)
  if (model.prices === undefined && model.window === undefined) problems.push(`${where} has neither prices nor a window`)
  const hidden = models.slice(0, at).some(({ family, name, since }) => family === model.family && name === model.name && since <= model.since)
  if (hidden) problems.push(`${where} is never reached: an earlier row has its name and an older version`)
}
for (const name of ['anthropic', 'openai', 'prefix'])
  if (table.caches?.[name] === undefined) problems.push(`[caches] lacks "${name}", which formats of unknown models have`)
if (problems.length > 0) {
  for (const problem of problems) console.error(`models.toml: ${problem}`)
  process.exit(1)
}

const { unknown, windows, caches, steps, families, rules } = table
const rows = (list) => list.map((row) => `    ${JSON.stringify(row)},\n`).join('')
const named = (object) =>
  Object.entries(object)
    .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
    .join('')
const text = `/** The table of models, as code. Written by scripts/models.mjs from models.toml: change that. */
import type { ModelTable } from './table-types.ts'

export const TABLE: ModelTable = {
  unknown: ${JSON.stringify(unknown)},
  windows: ${JSON.stringify(windows)},
  caches: {
${named(caches)}  },
  steps: {
${named(steps)}  },
  families: ${JSON.stringify(families)},
  rules: [
${rows(rules)}  ],
  models: [
${rows(models)}  ],
}
`
if (!process.argv.includes('--check')) writeFileSync(target, text)
else if (readFileSync(target, 'utf8') !== text) {
  console.error('lib/models/table.ts is not up to date: run node scripts/models.mjs')
  process.exit(1)
}
