/** The command `replay`. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { baselineOf, compare, readBaseline } from '../replay/baseline.ts'
import { CACHES } from '../replay/cache.ts'
import type { CacheRules } from '../replay/cache.ts'
import { JsonWriter } from '../replay/json.ts'
import type { JsonReport } from '../replay/json.ts'
import { OwnPhrases } from '../replay/missed/phrases.ts'
import { openRecording, piSessionFolder, sessionFiles } from '../replay/open.ts'
import { leftOutLines, PageWriter, problemLine } from '../replay/page/report.ts'
import { POLICY_NAMES } from '../replay/policies/policy.ts'
import type { PolicyName } from '../replay/policies/policy.ts'
import { ratioPrices } from '../replay/prices.ts'
import { LeftOut, NotReplayable } from '../replay/recording.ts'
import type { Problem } from '../replay/recording.ts'
import { replaySession } from '../replay/run.ts'
import type { ReplayOptions, SessionReport } from '../replay/run.ts'
import { Sums } from '../replay/summary.ts'
import { survey } from '../replay/survey.ts'
import { COLOURS, PLAIN, rowOf, sessionsTable, sessionTable, summaryTable, verdictLines } from '../replay/table.ts'
import type { Row } from '../replay/table.ts'
import { PrivateFile } from './private.ts'
import { countOf, numberOf, painted, plain, Progress, showsColours, tell, UsageError } from './terminal.ts'

export const REPLAY_HELP = `pi-context-manager replay [options] FILE|FOLDER...

Shows what the context manager would have sent, cost and saved on recorded sessions, next to other
policies. Reads session files of Pi (versions 1 to 3), transcripts of Claude Code, rollouts of Codex
and exports of OpenCode, also gzipped; a folder stands for all session files in it. No model is called,
nothing is sent anywhere, and no file is changed.

What to read
  FILE|FOLDER...        session files, or folders of them
  --all                 Pi's own session folder

What to compare
  --policies NAMES      of append,pi,mask,clear,sections,pi-context-manager,bound, or all
                        (default: pi,pi-context-manager). "pi" is plain Pi, "bound" is the lowest cost any
                        policy can reach. "sections" is slow on long sessions.

What to show
  --json                the report as JSON on standard output, instead of tables
  --html FILE           the report as one page for a browser
  --quiet               no tables
  --store FILE          keep the context manager's store for "inspect"; FILE must not exist

How the provider caches and charges
  --cache RULES         plain (any common prefix, default), anthropic (Pi's breakpoints, 20 blocks
                        back, 1,024 tokens at least), openai (steps of 128, 1,024 at least)
  --lookback N          how many blocks before a breakpoint the cache looks at
  --minimum N           the shortest prefix that is cached, in tokens
  --granularity N       the steps in which a prefix is cached, in tokens
  --lifetime SECONDS    how long a prefix stays cached (default 300)
  --read R --write W    prices of a cached and of a written token, relative to a fresh one
                        (default: the prices of the model that was used)
  --window N            the model's context window in tokens (default 200000)
  --chars-per-token N   characters per token (default: from the session's own usage)
  --system-tokens N     tokens of the system prompt and tools (default: from the session's own usage;
                        Claude Code's are ten times those of Pi)

The context manager's own settings
  --per-turn N          how many tool results of a turn stay active (default 5)
  --turns-back N        for how many turns results stay active (default 3)
  --only-at-user-turn   collapse only at the start of a user's turn

As a check
  --save-baseline FILE  save the figures of "pi-context-manager"
  --check FILE          fail if a figure is worse than in FILE

Exit code: 0; 1 if a file could not be read completely or a check failed; 2 for wrong usage.`

const OPTIONS = {
  all: { type: 'boolean' },
  policies: { type: 'string' },
  json: { type: 'boolean' },
  html: { type: 'string' },
  quiet: { type: 'boolean' },
  store: { type: 'string' },
  cache: { type: 'string' },
  lookback: { type: 'string' },
  minimum: { type: 'string' },
  granularity: { type: 'string' },
  lifetime: { type: 'string' },
  read: { type: 'string' },
  write: { type: 'string' },
  window: { type: 'string' },
  'chars-per-token': { type: 'string' },
  'system-tokens': { type: 'string' },
  'per-turn': { type: 'string' },
  'turns-back': { type: 'string' },
  'only-at-user-turn': { type: 'boolean' },
  'save-baseline': { type: 'string' },
  check: { type: 'string' },
} as const

type Values = ReturnType<typeof parse>['values']

/** Runs the command; resolves with the exit code. Throws a {@link UsageError} for wrong arguments. */
export async function replay(args: string[]): Promise<number> {
  const { values, positionals } = parse(args)
  const options = optionsOf(values)
  const scale = scaleOf(values)
  const baseline = values.check === undefined ? undefined : readBaseline(values.check)
  const paths = [...positionals, ...(values.all === true ? [piSessionFolder()] : [])]
  if (paths.length === 0) throw new UsageError('replay needs a session file, a folder, or --all')

  const problems: Problem[] = []
  const leftOut: JsonReport['leftOut'] = []
  const files = await filesOf(paths, (problem) => problems.push(problem))
  const about = described(options, scale)
  const sums = new Sums()
  const held: Pick<SessionReport, 'file' | 'policies'>[] = []
  const json = values.json === true ? new JsonWriter((text) => process.stdout.write(text), about.json) : undefined
  const html = values.html === undefined ? undefined : new PrivateFile(values.html)
  const page =
    html === undefined
      ? undefined
      : new PageWriter((text) => html.write(text), about.text, files.length)
  const work = new Work(files)
  const progress = new Progress()
  const rows: Row[] = []
  let single: SessionReport | undefined
  if (files.length > 1) options.phrases = await phrasesOf(files, (index) => progress.show(work.learned(index), 'learning'))
  try {
    for (const [index, file] of files.entries()) {
      const show = (part: number): void => progress.show(work.replayed(index, part), file)
      show(0)
      const report = await one(file, options, scale, show, problems, leftOut)
      if (report === undefined) continue
      sums.add(report)
      single = sums.sessions === 1 ? report : undefined
      const row = rowOf(report)
      if (row !== undefined) rows.push(row)
      json?.add(report)
      page?.add(report)
      if (baseline !== undefined || values['save-baseline'] !== undefined)
        held.push({ file, policies: report.policies })
    }
  } finally {
    progress.clear()
    const summary = sums.summary()
    json?.end(summary, problems, leftOut)
    page?.end(summary, problems, leftOut)
    html?.finish()
  }
  const summary = sums.summary()
  if (json === undefined && values.quiet !== true && summary.sessions > 0) {
    const paint = showsColours(process.stdout) ? COLOURS : PLAIN
    if (single !== undefined) painted(`${sessionTable(named(single), paint)}\n`)
    else {
      const shown = rows.map((row) => ({ ...row, project: plain(row.project), name: plain(row.name) }))
      if (shown.length > 0) painted(`${sessionsTable(shown, paint)}\n`)
      painted(`${summaryTable(summary, paint)}\n`)
    }
    const verdict = verdictLines(summary, paint)
    if (verdict !== undefined) painted(verdict)
  }
  for (const line of leftOutLines(leftOut)) tell(plain(line))
  for (const problem of problems) tell(plain(problemLine(problem)))
  if (values['save-baseline'] !== undefined) {
    writeFileSync(values['save-baseline'], `${JSON.stringify(baselineOf(held, about.text), null, 2)}\n`)
  }
  let failed = problems.length > 0
  if (baseline !== undefined) {
    const { worse, unknown } = compare(baseline, held, about.text)
    for (const name of unknown) tell(plain(`${name}: not in the baseline`))
    for (const line of worse) tell(plain(`worse: ${line}`))
    if (worse.length === 0) tell(plain(`no figure is worse than in ${values.check}`))
    failed ||= worse.length > 0
  }
  if (summary.sessions === 0 && problems.length === 0) tell('there is no session to replay')
  return failed || summary.sessions === 0 ? 1 : 0
}

/** A report whose names can't start a new line or control the terminal. */
function named(report: SessionReport): SessionReport {
  const skipped = Object.fromEntries(Object.entries(report.skipped).map(([kind, count]) => [plain(kind), count]))
  return { ...report, file: plain(report.file), models: report.models.map(plain), skipped }
}

function parse(args: string[]) {
  return parseArgs({ args, options: OPTIONS, allowPositionals: true })
}

async function filesOf(paths: readonly string[], report: (problem: Problem) => void): Promise<string[]> {
  const files: string[] = []
  for (const path of paths) {
    try {
      const before = files.length
      for await (const file of sessionFiles(path)) files.push(file)
      if (files.length === before) report({ file: path, message: 'the folder holds no session file', fatal: true })
    } catch (error) {
      report({ file: path, message: reason(error), fatal: true })
    }
  }
  return files
}

/** The share of the work that goes into learning phrases, before the replay. */
const LEARNING = 0.15

/** How much of the work is done, by file size. */
class Work {
  /** Bytes before each file, and all. */
  readonly #before: number[]
  readonly #all: number

  constructor(files: readonly string[]) {
    let sum = 0
    this.#before = files.map((file) => {
      const before = sum
      sum += statSync(file, { throwIfNoEntry: false })?.size ?? 0
      return before
    })
    this.#before.push(sum)
    this.#all = Math.max(1, sum)
  }

  /** Files before this one have been learned from. */
  learned(index: number): number {
    return (LEARNING * (this.#before[index] as number)) / this.#all
  }

  /** Files before this one have been replayed, and a part of it. */
  replayed(index: number, part: number): number {
    const [before, after] = [this.#before[index] as number, this.#before[index + 1] as number]
    return LEARNING + ((1 - LEARNING) * (before + part * (after - before))) / this.#all
  }
}

/** Phrases that models write on their own, learned from all these files together. */
async function phrasesOf(files: readonly string[], progress: (index: number) => void): Promise<OwnPhrases> {
  const phrases = new OwnPhrases()
  for (const [index, file] of files.entries()) {
    progress(index)
    try {
      await phrases.learn(await openRecording(file))
    } catch {
      // Problems with a file are reported when it is replayed.
    }
  }
  return phrases
}

async function one(
  file: string,
  options: ReplayOptions,
  scale: Scale,
  progress: (part: number) => void,
  problems: Problem[],
  leftOut: JsonReport['leftOut'],
): Promise<SessionReport | undefined> {
  try {
    const recording = await openRecording(file)
    const found = await survey(recording, (problem) => problems.push(problem))
    if (found.calls === 0) {
      leftOut.push({ file, message: 'no model call, nothing to replay' })
      return undefined
    }
    found.unitsPerToken = scale.unitsPerToken ?? found.unitsPerToken
    found.systemTokens = scale.systemTokens ?? found.systemTokens
    return await replaySession(recording, found, options, (calls) => progress(calls / found.calls))
  } catch (error) {
    if (error instanceof LeftOut) leftOut.push({ file, message: error.message })
    else problems.push({ file, message: reason(error), fatal: true })
    return undefined
  }
}

function reason(error: unknown): string {
  if (error instanceof NotReplayable) return error.message
  const { code, message } = error as { code?: string; message?: string }
  if (code === 'ENOENT') return 'there is no such file or folder'
  if (code === 'EACCES') return 'it may not be read (permission denied)'
  return `it could not be replayed: ${message ?? String(error)}`
}

function optionsOf(values: Values): ReplayOptions {
  const { store } = values
  if (store !== undefined && existsSync(store))
    throw new UsageError(`--store ${store}: the file exists; give a new name`)
  const prices = pricesOf(values)
  return {
    policies: policiesOf(values.policies),
    cache: cacheOf(values),
    window: countOf('window', values.window, 200_000, 1000),
    manager: {
      perTurn: numberOf('per-turn', values['per-turn'], 5, 0, 1_000_000),
      turnsBack: countOf('turns-back', values['turns-back'], 3, 1, 1_000_000),
      onlyAtUserTurn: values['only-at-user-turn'] === true,
      overheadTokens: OVERHEAD_TOKENS,
    },
    ...(prices !== undefined && { prices }),
    ...(store !== undefined && { store }),
  }
}

/** Tokens of the extension's tools and its instructions to the model; the extension's tests enforce this limit. */
const OVERHEAD_TOKENS = 600

function policiesOf(text: string | undefined): PolicyName[] {
  if (text === undefined) return ['pi', 'pi-context-manager']
  if (text === 'all') return [...POLICY_NAMES]
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.filter((name) => !(POLICY_NAMES as readonly string[]).includes(name))
  if (wrong.length > 0) throw new UsageError(`there is no policy "${wrong[0]}"; known are ${POLICY_NAMES.join(', ')}`)
  return POLICY_NAMES.filter((name) => names.includes(name))
}

function cacheOf(values: Values): CacheRules {
  const name = values.cache ?? 'plain'
  if (!Object.hasOwn(CACHES, name)) {
    throw new UsageError(`there are no cache rules "${name}"; known are ${Object.keys(CACHES).join(', ')}`)
  }
  const rules = CACHES[name as keyof typeof CACHES]
  const { lookback } = values
  return {
    name,
    lookback: lookback === undefined ? rules.lookback : numberOf('lookback', lookback, 0, 1, 1_000_000),
    minimum: numberOf('minimum', values.minimum, rules.minimum),
    granularity: numberOf('granularity', values.granularity, rules.granularity, 1),
    lifetimeMs: 1000 * numberOf('lifetime', values.lifetime, rules.lifetimeMs / 1000, 0, 1e9),
  }
}

function pricesOf(values: Values): ReplayOptions['prices'] {
  if (values.read === undefined && values.write === undefined) return undefined
  return ratioPrices(numberOf('read', values.read, 0.1, 0, 1), numberOf('write', values.write, 1.25, 0, 100))
}

/** Derived from the session's own usage, unless the user sets it. */
interface Scale {
  unitsPerToken: number | undefined
  systemTokens: number | undefined
}

function scaleOf(values: Values): Scale {
  const number = (name: 'chars-per-token' | 'system-tokens', least: number, most: number): number | undefined =>
    values[name] === undefined ? undefined : numberOf(name, values[name], 0, least, most)
  return { unitsPerToken: number('chars-per-token', 1, 10), systemTokens: number('system-tokens', 0, 1_000_000) }
}

/** What the figures were measured with, for programs and as a sentence. */
function described(
  { cache, prices, window, manager }: ReplayOptions,
  { unitsPerToken, systemTokens }: Scale,
): { json: JsonReport['options']; text: string } {
  const ratio =
    prices === undefined
      ? undefined
      : { read: prices.cacheRead / prices.input, write: prices.cacheWrite / prices.input }
  const reach = cache.lookback === undefined ? 'any common prefix' : `${cache.lookback} blocks before a breakpoint`
  const least = cache.minimum === 0 ? '' : `, ${cache.minimum} tokens at least`
  const steps = cache.granularity === 1 ? '' : `, steps of ${cache.granularity} tokens`
  const rules = `${cache.name} (${reach}${least}${steps}, kept ${cache.lifetimeMs / 1000} s)`
  const money = ratio === undefined ? "the models' own prices" : `cached ${ratio.read}, written ${ratio.write}`
  const size =
    unitsPerToken === undefined ? 'tokens by the sessions’ own usage' : `${unitsPerToken} characters a token`
  const system = systemTokens === undefined ? '' : `, system part ${systemTokens}`
  const own = `window of ${manager.perTurn} results a turn and ${manager.turnsBack} turns${manager.onlyAtUserTurn ? ', rolls at user turns' : ''}`
  return {
    json: {
      cache: cache.name,
      prices: ratio ?? 'own',
      window,
      charsPerToken: unitsPerToken ?? 'fitted',
      systemTokens: systemTokens ?? 'fitted',
    },
    text: `prompt cache ${rules}, ${money}, ${size}${system}, context window of ${window} tokens, ${own}`,
  }
}
