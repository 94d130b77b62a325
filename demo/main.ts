/**
 * The demo: a scripted agent works twice on a copy of this repository in the real Pi, once plain and once with the
 * context manager on an embedded store; a table compares what the model was sent. Run it by `npm run demo`.
 */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAllToolPairs } from '../rig/checks.ts'
import { EXTENSION, hasExtension, withExtension } from '../rig/extension.ts'
import { PrefixCache } from '../rig/meter.ts'
import { startModelServer } from '../rig/model-server.ts'
import { cleanUp, createPiHome, startPrint } from '../rig/pi.ts'
import type { PrintResult } from '../rig/pi.ts'
import type { ModelRequest } from '../rig/exchange.ts'
import { findRuntime } from '../pi-runtime/index.mjs'
import { createAgent, LAST_ANSWER } from './agent.ts'
import type { Agent } from './agent.ts'
import { progressOn } from './progress.ts'
import { inSight, table, whole } from './report.ts'
import { copyRepository, filesToRead, repositoryFiles } from './workspace.ts'

/** A longer run is a failed demo; a run that hangs must end with a sentence. */
const RUN_TIMEOUT_MS = 120_000

const screen = progressOn(process.stdout)

/** One run's outcome. */
interface Run {
  agent: Agent
  requests: ModelRequest[]
  result: PrintResult
}

/** A failure that the user sees as it is, without a stack. */
class DemoError extends Error {}

// The reader of the output may stop reading; the demo then continues in silence to its orderly end.
process.stdout.on('error', () => {})

let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = true
    void cleanUp()
  })
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pi-context-demo-')))
try {
  await demo()
} catch (error) {
  screen.print()
  if (interrupted) {
    screen.print('Interrupted.')
    rmSync(folder, { recursive: true, force: true })
  } else {
    screen.print(`The demo failed: ${explain(error)}`)
    screen.print(`Its files are left for a look: ${folder}`)
  }
  process.exitCode = interrupted ? 130 : 1
} finally {
  await cleanUp()
}

/** A foreseen failure as its sentence, any other with its stack. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error instanceof DemoError ? error.message : (error.stack ?? error.message)
}

async function demo(): Promise<void> {
  const started = performance.now()
  const { version } = findRuntime()
  const store = join(folder, 'store', 'context.sqlite')
  const files = repositoryFiles()
  const managed = hasExtension()

  screen.print(`Pi ${version}, a scripted model on this machine, a copy of this repository (${files.length} files).`)
  if (!managed) screen.print(`${EXTENSION} does not exist, so this runs plain Pi only.`)
  screen.print()

  const plain = await run('plain Pi', join(folder, 'plain-pi'), files)
  const columns = [{ name: 'plain Pi', requests: plain.requests }]
  if (!managed) {
    screen.print()
    for (const line of table(columns)) screen.print(line)
    rmSync(folder, { recursive: true, force: true })
    return
  }
  const context = await run('with context manager', join(folder, 'with-ctx'), files, withExtension(store))
  columns.push({ name: 'with context manager', requests: context.requests })

  screen.print()
  for (const line of table(columns)) screen.print(line)
  screen.print()
  reportContext(context, store)
  screen.print()
  screen.print(`Took ${((performance.now() - started) / 1000).toFixed(0)} s. To remove its files: rm -r ${folder}`)
}

/** Runs the agent's prompts through one `pi -p` and checks that all of it happened. */
async function run(name: string, root: string, files: readonly string[], load: { extension?: string; env?: Record<string, string> } = {}): Promise<Run> {
  const folders = [...new Set(files.filter((path) => path.includes('/')).map((path) => path.split('/')[0] as string))]
  const agent = createAgent(filesToRead(files, 10), folders)
  const cache = new PrefixCache()
  const sent = { tokens: 0, cached: 0 }
  const server = await startModelServer(async (request, n) => {
    const reply = await (agent.script as (request: ModelRequest, n: number) => object)(request, n)
    const { prompt, cached } = cache.add(request.prompt)
    sent.tokens += prompt
    sent.cached += cached
    const place = `${name}: prompt ${agent.round} of ${agent.prompts.length}, model call ${n + 1}`
    const share = `${whole(sent.tokens)} tokens sent, ${Math.round((100 * sent.cached) / sent.tokens)} % cached`
    screen.update(`${place}, ${share}: ${agent.doing}`, `${name} ${agent.round}`)
    return reply
  })
  const home = createPiHome({ server, root })
  copyRepository(files, home.cwd)
  const running = startPrint({ home, prompts: agent.prompts, timeoutMs: RUN_TIMEOUT_MS, ...load })
  const result = await running.result.catch(() => {
    const answered = running.process.stdout.includes(LAST_ANSWER)
    const calls = `did not end, ${server.requests.length} model calls in`
    const what = answered ? 'gave its last answer but did not end' : calls
    throw new DemoError(`${name}: Pi ${what} within ${RUN_TIMEOUT_MS / 1000} s.${written(running.process.stderr)}`)
  })
  check(name, server.problems, result, server.requests)
  rmSync(home.cwd, { recursive: true, force: true })
  screen.print(`${name}: done, ${server.requests.length} model calls`)
  return { agent, requests: server.requests, result }
}

/** Throws unless the run went through to its last answer and the model was sent well-formed conversations. */
function check(name: string, problems: readonly string[], result: PrintResult, requests: readonly ModelRequest[]): void {
  const wrote = written(result.stderr)
  if (problems.length > 0) throw new DemoError(`${name}: ${problems.join('; ')}${wrote}`)
  if (result.exitCode !== 0) {
    const end = result.exitCode ?? result.signal
    throw new DemoError(`${name}: Pi ended with ${end} after ${requests.length} model calls.${wrote}`)
  }
  if (!result.stdout.includes(LAST_ANSWER)) {
    throw new DemoError(`${name}: Pi ended after ${requests.length} model calls without the last answer.${wrote}`)
  }
  if (/extension error/i.test(result.stderr)) throw new DemoError(`${name}: the extension failed.${wrote}`)
  if (wrote !== '') screen.print(`${name}:${wrote}`)
  try {
    checkAllToolPairs(requests.filter((request) => request.kind === 'agent'))
  } catch (error) {
    throw new DemoError(`${name}: tool calls and results that do not match: ${(error as Error).message}`)
  }
}

/** Returns Pi's standard error, each line once; empty if there is none. */
function written(stderr: string): string {
  const lines = new Set(stderr.split('\n').filter((line) => line.trim() !== ''))
  return lines.size === 0 ? '' : `\nPi wrote:\n  ${[...lines].slice(0, 40).join('\n  ')}`
}

/** The context manager's work, in sentences; each is checked before it is printed. */
function reportContext(run: Run, store: string): void {
  const last = run.requests.at(-1)
  if (last === undefined) throw new DemoError('no model call was recorded')
  const { full, references, fullTokens } = inSight(last)
  screen.print(`In the window at the end: ${full} tool results in full (${whole(fullTokens)} tokens), ${references} as references.`)
  const { back } = run.agent
  if (references === 0) throw new DemoError('the context manager has not collapsed a single result')
  if (back === undefined) throw new DemoError('the agent found no reference to go back to')
  if (!back.returned) throw new DemoError(`${back.id} was asked for and did not come in the next request`)
  screen.print(`The agent went back to an earlier result: ${back.id} (${back.tool}) brought its text back.`)
  if (!existsSync(store)) throw new DemoError(`the store was not written: ${store}`)
  const head = readFileSync(store).subarray(0, 15).toString('latin1')
  if (head !== 'SQLite format 3') throw new DemoError(`${store} is not a SQLite file`)
  screen.print(`Store:   ${store} (${whole(statSync(store).size / 1024)} KiB)`)
  screen.print(`         look into it with: node dist/cli/main.js inspect --store ${store} --html ${store}.html`)
  screen.print(`Session: ${run.result.sessionFile ?? 'none'}`)
}
