/**
 * `npm run likelihood -- [options] FILE|FOLDER...`: how much less likely recorded answers become after the requests of a
 * policy, by a real coding model that runs without a GPU. docs/harm.md explains the measure.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { sessionFiles } from '../../lib/recordings/index.ts'
import { phrasesOf } from '../../lib/replay/index.ts'
import { ARMS, capture, runName } from './capture.ts'
import { answersOf, unitsOf } from './costs.ts'
import { MODELS, graphOf, modelFile, pythonWithOnnx, toolsFolder } from './install.ts'
import { Llama } from './llama.ts'
import { measure } from './measure.ts'
import type { Model } from './model.ts'
import { Onnx } from './onnx.ts'

const HELP = `npm run likelihood -- [options] FILE|FOLDER...

  --model NAME|FILE   ${Object.keys(MODELS).join(', ')}, or a GGUF file (default: the first)
  --engine NAME       onnx or llama.cpp (default: onnx for the models named here, llama.cpp for a file)
  --out FOLDER        results, one file per session; what is there is not measured again
  --cache FOLDER      models and engine (default: ~/.cache/pi-context-manager-lab)
  --arms NAMES        ${ARMS.map(({ name }) => name).join(', ')} (default: all)
  --tokens N          leave out answers behind more tokens than this (default 32000)
  --part K/N          only each Nth session, from the Kth on, for several processes
  --threads N         (default 1; several processes use several cores better)
  --only-costs        write what the requests cost, without a model
  --only-install      download the model and the engine, and end`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    model: { type: 'string', default: Object.keys(MODELS)[0] as string },
    engine: { type: 'string' },
    out: { type: 'string', default: 'likelihood' },
    cache: { type: 'string', default: join(homedir(), '.cache/pi-context-manager-lab') },
    arms: { type: 'string' },
    tokens: { type: 'string', default: '32000' },
    part: { type: 'string', default: '1/1' },
    threads: { type: 'string', default: '1' },
    'only-costs': { type: 'boolean' },
    'only-install': { type: 'boolean' },
    help: { type: 'boolean' },
  },
  args: process.argv.slice(process.argv.findIndex((one) => one.endsWith('main.ts')) + 1),
})
if (values.help === true || (positionals.length === 0 && values['only-install'] !== true)) {
  console.log(HELP)
  process.exit(values.help === true ? 0 : 2)
}
const limit = Number(values.tokens)
const engine = values.engine ?? (values.model in MODELS ? 'onnx' : 'llama.cpp')
if (engine !== 'onnx' && engine !== 'llama.cpp') throw new Error(`unknown engine ${engine}: name onnx or llama.cpp`)
const model = values['only-costs'] === true ? undefined : opened()
if (values['only-install'] !== true) await run()
model?.close()

/** Installs what is missing, and loads the model. */
function opened(): Model | undefined {
  const options = { tools: toolsFolder(values.cache), model: modelFile(values.model, values.cache), context: limit + 256, threads: Number(values.threads) }
  const python = engine === 'onnx' ? pythonWithOnnx(values.cache) : undefined
  const graph = python === undefined ? undefined : graphOf(options.model, python)
  if (values['only-install'] === true) return undefined
  return python === undefined || graph === undefined ? new Llama(options) : new Onnx({ ...options, python, graph })
}

/** Keeps results of other models and engines out of the folder: their nats are not comparable. */
function claim(folder: string): void {
  const file = join(folder, 'model.json')
  const own = JSON.stringify({ model: basename(values.model), engine })
  if (!existsSync(file)) writeFileSync(file, own)
  const found = readFileSync(file, 'utf8')
  if (found !== own) throw new Error(`${folder} has results of ${found}; name another folder for ${own}`)
}

async function run(): Promise<void> {
  const names = values.arms?.split(',').map((name) => name.trim())
  const unknown = names?.find((name) => !ARMS.some((arm) => arm.name === name))
  if (unknown !== undefined) throw new Error(`unknown arm ${unknown}; the arms are ${ARMS.map(({ name }) => name).join(', ')}`)
  const arms = ARMS.filter((arm, index) => index === 0 || names === undefined || names.includes(arm.name))
  const [part = 1, parts = 1] = values.part.split('/').map(Number)
  const files: string[] = []
  for (const path of positionals) for await (const file of sessionFiles(path)) files.push(file)
  // By a hash of their names, so that the first ones are a sample of all.
  const rank = (file: string): string => createHash('sha256').update(runName(file)).digest('hex')
  files.sort((left, right) => (rank(left) < rank(right) ? -1 : 1))
  const phrases = files.length > 1 ? await phrasesOf(files) : undefined
  mkdirSync(values.out, { recursive: true })
  if (model !== undefined) claim(values.out)
  const began = Date.now()
  for (const [index, file] of files.entries()) {
    if (index % parts !== part - 1) continue
    const captured = await capture(file, arms, phrases)
    const name = runName(file)
    const costs = Object.fromEntries([...captured].map(([arm, calls]) => [arm, { ...unitsOf(calls), ...answersOf(calls, captured.get('full') ?? []) }]))
    writeFileSync(join(values.out, `${name}.costs.json`), JSON.stringify(costs))
    if (model === undefined) continue
    await measure(model, {
      file: join(values.out, `${name}.jsonl`),
      arms: arms.map((arm) => ({ arm, captured: captured.get(arm.name) ?? [] })),
      limit,
      progress: (arm, answer) =>
        console.log(`${name} ${arm} ${answer}: ${model.decoded} tokens, ${(model.decoded / ((Date.now() - began) / 1000)).toFixed(0)} a second`),
    })
    console.log(`${new Date().toISOString()} ${index + 1}/${files.length} ${name}`)
  }
}
