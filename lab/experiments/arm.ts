/** One run of one task: the real Pi in a fresh folder, with or without the context manager, and by which settings. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { EXTENSION } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { createPiHome, messagesOf, newestSession, branchOf, readSession, runPrint, temporaryFolder } from '../../rig/pi.ts'
import { PiProcess } from '../../rig/process.ts'
import type { Settings } from '../../extensions/settings.ts'
import type { Task } from './task.ts'

/** One way to run a task. */
interface Arm {
  /** As `--arms` takes it, and as the report calls it. */
  name: string
  /** Settings of the context manager over its defaults; undefined: without it. */
  settings: Partial<Settings> | undefined
}

/** Settings that arms can differ in. */
const VARIED = ['thinking', 'calls', 'prose']

/**
 * The arm of a name: `plain`, `managed`, or settings over the defaults, such as `thinking=keep` or `calls=20+prose=keep`.
 * Throws if there is none.
 */
export function armNamed(name: string): Arm {
  if (name === 'plain') return { name, settings: undefined }
  if (name === 'managed') return { name, settings: {} }
  const given = name.split('+').map((part) => part.split('='))
  for (const [setting = '', value = '', ...rest] of given) {
    if (VARIED.includes(setting) && rest.length === 0 && /^(keep|[1-9]\d{0,8})$/.test(value)) continue
    const wanted = `${VARIED.join(', ')}=keep or a number of model calls, joined by +`
    throw new Error(`unknown arm "${name}": plain, managed, or ${wanted}`)
  }
  return { name, settings: Object.fromEntries(given.map(([setting, value]) => [setting, value === 'keep' ? value : Number(value)])) }
}

/** The result of a run. */
export interface Outcome {
  /** The arm's name. */
  arm: string
  /** Why the task is not solved; undefined where it is. */
  failure: string | undefined
  /** Model calls. */
  calls: number
  /** Prompt tokens over all calls, as the provider counted them. */
  promptTokens: number
  /** The part of them that was read from the cache. */
  cachedTokens: number
  /** The largest prompt. */
  peakTokens: number
  outputTokens: number
  /** Dollars, by the model's prices in Pi's catalogue; 0 where it has none. */
  cost: number
  /** Reads of a file that had been read before. */
  rereads: number
  /** Calls by tool. */
  tools: Record<string, number>
}

/** The way in which models are run. */
interface ModelChoice {
  /** `provider/id` of a model that Pi is configured for; undefined for the scripted one. */
  model: string | undefined
  /** Minutes until a run is given up. */
  minutes: number
}

/** A scripted model's prices, so that costs can be compared: those of a usual large model. */
const SCRIPTED_PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }

/** Runs a task. Never rejects for what the model does: a run that fails is an outcome. */
export async function run(task: Task, arm: Arm, choice: ModelChoice): Promise<Outcome> {
  const { folder, sessionFile, ended } =
    choice.model === undefined ? await scripted(task, arm, choice) : await configured(task, arm, { ...choice, model: choice.model })
  const figures = sessionFile === undefined ? NOTHING : measure(sessionFile)
  return { arm: arm.name, ...figures, failure: ended ?? task.judge(folder) }
}

const NOTHING = {
  calls: 0,
  promptTokens: 0,
  cachedTokens: 0,
  peakTokens: 0,
  outputTokens: 0,
  cost: 0,
  rereads: 0,
  tools: {},
}

interface Ran {
  folder: string
  sessionFile: string | undefined
  /** Pi's message if it failed. */
  ended: string | undefined
}

async function scripted(task: Task, arm: Arm, { minutes }: ModelChoice): Promise<Ran> {
  const answers = task.script.flat()
  const server = await startModelServer((request) => {
    if (request.kind !== 'agent') return 'Everything so far went as the user asked.'
    const next = answers.shift()
    if (next === undefined) throw new Error('the script has no answer left')
    return next
  })
  const home = createPiHome({ server, api: 'anthropic-messages', model: { cost: SCRIPTED_PRICES } })
  write(home.cwd, task)
  const result = await runPrint({
    home,
    prompts: task.prompts,
    timeoutMs: minutes * 60_000,
    ...(arm.settings !== undefined && { extension: EXTENSION, env: variables(home.root, arm.settings) }),
  })
  const problem = server.problems[0]
  const ended = problem ?? (result.exitCode === 0 ? undefined : `Pi ended with ${result.exitCode}: ${result.stderr.trim().slice(0, 200)}`)
  return { folder: home.cwd, sessionFile: result.sessionFile, ended }
}

/** The user's own Pi with the user's own model; sessions and the store stay in a temporary folder. */
async function configured(task: Task, arm: Arm, { model, minutes }: ModelChoice & { model: string }): Promise<Ran> {
  const root = temporaryFolder('pi-experiment-')
  const folder = join(root, 'work')
  const sessions = join(root, 'sessions')
  mkdirSync(folder)
  write(folder, task)
  const extension = arm.settings === undefined ? [] : ['-e', EXTENSION]
  const args = ['-p', '--model', model, '--no-extensions', ...extension, '--session-dir', sessions, '--no-approve', '--', ...task.prompts]
  const env = { ...(process.env as Record<string, string>), ...variables(root, arm.settings ?? {}) }
  const running = new PiProcess({ args, cwd: folder, env, input: false })
  try {
    const { code } = await running.wait(minutes * 60_000)
    const ended = code === 0 ? undefined : `Pi ended with ${code}: ${running.stderr.trim().slice(0, 200)}`
    return { folder, sessionFile: newestSession(sessions), ended }
  } catch {
    return { folder, sessionFile: newestSession(sessions), ended: `not done after ${minutes} minutes` }
  }
}

/** The variables that give a run its own store and settings, whatever the user has set. */
function variables(root: string, settings: Partial<Settings>): Record<string, string> {
  return { CONTEXT_STORE_PATH: join(root, 'context.db'), CONTEXT_SETTINGS: JSON.stringify(settings) }
}

function write(folder: string, task: Task): void {
  for (const [path, text] of Object.entries(task.files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** Returns what Pi's session file says about a run. */
function measure(sessionFile: string): Omit<Outcome, 'arm' | 'failure'> {
  const figures = { ...NOTHING, tools: {} as Record<string, number> }
  const read = new Set<string>()
  for (const message of messagesOf(branchOf(readSession(sessionFile).entries), 'assistant')) {
    const { input, output, cacheRead, cacheWrite, cost } = message['usage']
    const prompt = input + cacheRead + cacheWrite
    figures.calls += 1
    figures.promptTokens += prompt
    figures.cachedTokens += cacheRead
    figures.peakTokens = Math.max(figures.peakTokens, prompt)
    figures.outputTokens += output
    figures.cost += cost?.total ?? 0
    for (const block of message['content']) {
      if (block.type !== 'toolCall') continue
      figures.tools[block.name] = (figures.tools[block.name] ?? 0) + 1
      if (block.name !== 'read') continue
      const path = String(block.arguments?.path)
      if (read.has(path)) figures.rereads += 1
      read.add(path)
    }
  }
  return figures
}
