/** `npm run experiment`: the same tasks by the real Pi, without the context manager and with it, by some settings. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cleanUp } from '../../rig/pi.ts'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { armNamed, run } from './arm.ts'
import type { Outcome } from './arm.ts'
import { reportOf } from './report.ts'
import type { Runs } from './report.ts'
import { tasksNamed } from './tasks.ts'

const HELP = `npm run experiment -- [options]

Lets the real Pi work on small coding tasks in scratch folders, plain and with
the context manager, and writes a report. Build first (npm run build).

With a key of your own, a first comparison takes about ten minutes:
  1. In Pi, choose the model once (/login, /model), so that its key is
     configured. "pi --list-models" lists the models.
  2. npm run experiment -- --model PROVIDER/ID \\
       --tasks repair,search --seeds 1,2,3
  3. Read the table in docs/experiments/MODEL.md: solved, cost, tokens and files
     read again, plain beside managed.
A difference that does not hold over several seeds is chance.

  --model PROVIDER/ID   a model that your Pi is configured for; this costs
                        money. Without it a scripted model works, which shows
                        the machinery and not how a model behaves.
  --tasks NAMES         some of repair,search,rename,series (default: all)
  --arms NAMES          how each task is run: plain, managed, or managed with
                        settings over the defaults, each of thinking, calls and
                        prose to keep or a number of model calls, such as
                        thinking=keep,calls=20+prose=keep (default:
                        plain,managed)
  --seeds NUMBERS       one run for each task, arm and seed (default: 1)
  --minutes N           until a run is given up (default: 15)
  --out FILE            where the report goes
                        (default: docs/experiments/MODEL.md)`

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    tasks: { type: 'string' },
    arms: { type: 'string', default: 'plain,managed' },
    seeds: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '15' },
    out: { type: 'string' },
    help: { type: 'boolean' },
  },
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cleanUp().then(() => process.exit(130)))

if (values.help === true) process.stdout.write(`${HELP}\n`)
else process.exitCode = await experiment()

async function experiment(): Promise<number> {
  const seeds = values.seeds.split(',').map(Number)
  const minutes = Number(values.minutes)
  if (!seeds.every(Number.isSafeInteger) || !(minutes > 0)) throw new Error('--seeds takes whole numbers, --minutes a number above 0')
  const choice = { model: values.model, minutes }
  const name = values.model ?? 'scripted model'
  const arms = values.arms.split(',').map(armNamed)
  const all: Runs[] = []
  for (const seed of seeds) {
    for (const task of tasksNamed(values.tasks?.split(','), seed)) {
      const outcomes: Outcome[] = []
      for (const arm of arms) outcomes.push(await told(task.name, seed, () => run(task, arm, choice)))
      all.push({ task, seed, outcomes })
    }
  }
  const out = values.out === undefined ? defaultPath(name) : resolve(values.out)
  mkdirSync(dirname(out), { recursive: true })
  writeFileSync(out, reportOf(all, { model: name, pi: findRuntime().version, seeds }))
  process.stdout.write(`${out}\n`)
  // A scripted agent makes no mistakes: what is unsolved then is a defect of ours.
  const unsolved = all.some(({ outcomes }) => outcomes.some((one) => one.failure !== undefined))
  return values.model === undefined && unsolved ? 1 : 0
}

async function told(task: string, seed: number, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    const outcome = await work()
    const state = outcome.failure ?? 'solved'
    process.stderr.write(`${task}, seed ${seed}, ${outcome.arm}: ${state}, ${outcome.calls} calls, ${outcome.promptTokens} tokens\n`)
    return outcome
  } finally {
    await cleanUp()
  }
}

function defaultPath(model: string): string {
  const file = `${model.replace(/[^\w.-]+/g, '-')}.md`
  return fileURLToPath(new URL(`../../docs/experiments/${file}`, import.meta.url))
}
