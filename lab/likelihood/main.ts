/**
 * `npm run likelihood -- [options] FILE|FOLDER...`: how much less likely recorded answers become after the requests of a
 * policy, by a real coding model that runs without a GPU. docs/harm.md explains the measure.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sessionFiles } from '../../lib/recordings/index.ts'
import { ARMS, capture, runName } from './capture.ts'
import { unitsOf } from './costs.ts'
import { Engine } from './engine.ts'
import { MODELS, modelFile, toolsFolder } from './install.ts'
import { measure } from './measure.ts'

const HELP = `npm run likelihood -- [options] FILE|FOLDER...

  --model NAME|FILE   ${Object.keys(MODELS).join(', ')}, or a GGUF file (default: the first)
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
const engine = values['only-costs'] === true ? undefined : opened()
if (values['only-install'] !== true) await run()

/** Installs what is missing, and loads the model. */
function opened(): Engine | undefined {
  const options = { tools: toolsFolder(values.cache), model: modelFile(values.model, values.cache), context: limit + 256, threads: Number(values.threads) }
  return values['only-install'] === true ? undefined : new Engine(options)
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
  mkdirSync(values.out, { recursive: true })
  const began = Date.now()
  for (const [index, file] of files.entries()) {
    if (index % parts !== part - 1) continue
    const captured = await capture(file, arms)
    const name = runName(file)
    const costs = Object.fromEntries([...captured].map(([arm, calls]) => [arm, unitsOf(calls)]))
    writeFileSync(join(values.out, `${name}.costs.json`), JSON.stringify(costs))
    if (engine === undefined) continue
    measure(engine, {
      file: join(values.out, `${name}.jsonl`),
      arms: arms.map((arm) => ({ arm, captured: captured.get(arm.name) ?? [] })),
      limit,
      progress: (arm, answer) =>
        console.log(`${name} ${arm} ${answer}: ${engine.decoded} tokens, ${(engine.decoded / ((Date.now() - began) / 1000)).toFixed(0)} a second`),
    })
    console.log(`${new Date().toISOString()} ${index + 1}/${files.length} ${name}`)
  }
}
