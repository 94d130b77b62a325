/** The command `replay`. */
import { writeFileSync } from 'node:fs'
import { statOf } from '../core/index.ts'
import { needReplaceable, NotFound, painted, plain, Progress, showsColours, tell, UsageError, widthOf, wrapped, writePrivately } from '../ui/index.ts'
import {
  baselineOf,
  COLOURS,
  compare,
  JsonWriter,
  leftOutLines,
  phrasesOf,
  PageWriter,
  PLAIN,
  problemLine,
  readBaseline,
  replaySession,
  ReplaySums,
  rowOf,
  sessionsTable,
  sessionTable,
  summaryTable,
  survey,
  verdictLines,
} from '../replay/index.ts'
import type { HeldSession, JsonReport, NotedCall, ReplayOptions, Row, SessionReport, Summary } from '../replay/index.ts'
import { allSessionFiles, LeftOut, NotReplayable, openRecording } from '../recordings/index.ts'
import type { Charged, PaidCall, PricesByModel, Problem } from '../recordings/index.ts'
import { chargesOf, folderNames, notedCalls, NotedCalls, usedFolders } from '../usage/index.ts'
import { DONE, NONE } from './exit.ts'
import { pathsNamed } from './session-file.ts'
import { billsBeside } from './store.ts'
import { described, optionsOf, parse, scaleOf } from './replay-options.ts'
import type { Scale } from './replay-options.ts'

/** Runs the command; resolves with the exit code. Throws a {@link UsageError} for wrong arguments. */
export async function replay(args: string[]): Promise<number> {
  const { values, positionals } = parse(args)
  const options = optionsOf(values)
  const scale = scaleOf(values)
  if (values.html !== undefined) needReplaceable(values.html, 'a page')
  if (values['save-baseline'] !== undefined) {
    if (!options.policies.includes('pi-context-manager'))
      throw new UsageError('--save-baseline keeps the figures of "pi-context-manager"; name it in --policies, too')
    needReplaceable(values['save-baseline'], 'a baseline')
  }
  const baseline = values.check === undefined ? undefined : readBaseline(values.check)
  const used = values.all === true ? usedFolders().map(({ path }) => path) : []
  const paths = [...(await pathsNamed(positionals)), ...used]
  if (paths.length === 0)
    throw values.all === true
      ? new NotFound(`there are no sessions in ${folderNames()}; name a file or folder, or use an agent first`)
      : new UsageError('replay needs a session file, a folder, or --all')
  const run = new Run(options, scale, values.check !== undefined || values['save-baseline'] !== undefined, values.policies !== undefined)
  const files = await run.find(paths, used)
  const about = described(options, scale)
  const json = values.json === true ? new JsonWriter((text) => process.stdout.write(text), about.json) : undefined
  if (values.html === undefined) await run.replay(files, [json])
  else {
    await writePrivately(values.html, (write) => run.replay(files, [json, new PageWriter(write, about.text, files.length)]))
  }
  if (json === undefined && values.quiet !== true) run.print()
  run.tellProblems()
  if (values['save-baseline'] !== undefined) {
    writeFileSync(values['save-baseline'], `${JSON.stringify(baselineOf(run.held, about.text), null, 2)}\n`)
  }
  const isWorse = baseline !== undefined && tellWorse(compare(baseline, run.held, about.text), values.check ?? '')
  return run.problems.length > 0 || run.sessions === 0 || isWorse ? NONE : DONE
}

/** Takes reports as they are made. */
interface Sink {
  add(report: SessionReport): void
  end(summary: Summary, problems: readonly Problem[], leftOut: JsonReport['leftOut']): void
}

/** One run over many files. */
class Run {
  readonly problems: Problem[] = []
  /** Figures of each session, for a baseline. */
  readonly held: HeldSession[] = []
  readonly #options: ReplayOptions
  readonly #scale: Scale
  readonly #holds: boolean
  readonly #leftOut: JsonReport['leftOut'] = []
  /** Names of the calls so far. */
  readonly #charged: Charged = new Set()
  /** The gateway's notes of its calls. */
  #noted = new NotedCalls()
  readonly #sums = new ReplaySums()
  readonly #rows: Row[] = []
  /** The report of the only session. */
  #single: SessionReport | undefined

  /** The user has named policies. */
  readonly #isAsked: boolean
  #hasPi = false

  constructor(options: ReplayOptions, scale: Scale, holds: boolean, isAsked: boolean) {
    this.#options = options
    this.#isAsked = isAsked
    this.#scale = scale
    this.#holds = holds
  }

  /** The number of replayed sessions. */
  get sessions(): number {
    return this.#sums.sessions
  }

  /** The session files that these paths stand for. `used`: those of them that the user has not named, and which may be empty. */
  find(paths: readonly string[], used: readonly string[]): Promise<string[]> {
    return filesOf(paths, used, (problem) => this.problems.push(problem))
  }

  /** Replays files, and hands each report on. */
  async replay(files: readonly string[], sinks: readonly (Sink | undefined)[]): Promise<void> {
    const work = new Work(files)
    // A baseline depends on its files alone.
    if (!this.#holds) this.#noted = await notedCalls(billsBeside(undefined))
    const progress = new Progress()
    if (files.length > 1) this.#options.phrases = await phrasesOf(files, (index) => progress.show(work.learned(index), 'learning'))
    try {
      for (const [index, file] of files.entries()) {
        const show = (part: number): void => progress.show(work.replayed(index, part), file)
        show(0)
        const report = await this.#one(file, show)
        if (report === undefined) continue
        this.#take(report)
        for (const sink of sinks) sink?.add(report)
      }
    } finally {
      progress.clear()
      const summary = this.#sums.summary()
      for (const sink of sinks) sink?.end(summary, this.problems, this.#leftOut)
    }
  }

  /** Prints the tables and the verdict. */
  print(): void {
    const summary = this.#shown(this.#sums.summary())
    if (summary.sessions === 0) return
    const paint = showsColours(process.stdout) ? COLOURS : PLAIN
    const width = widthOf(process.stdout)
    if (this.#single !== undefined) painted(`${sessionTable(named(this.#shown(this.#single)), paint, width)}\n`)
    else {
      const shown = this.#rows.map((row) => ({
        ...row,
        project: plain(row.project),
        name: plain(row.name),
        ...(row.id !== undefined && { id: plain(row.id) }),
      }))
      if (shown.length > 0) painted(`${sessionsTable(shown, paint, width)}\n`)
      painted(`${summaryTable(summary, paint, width)}\n`)
    }
    const verdict = verdictLines(summary, paint)
    if (verdict !== undefined)
      for (const sentence of verdict.split('\n')) painted(process.stdout.isTTY === true ? wrapped(sentence, width).join('\n') : sentence)
  }

  /** Without the policy `pi` where no session of Pi was replayed, and the user has not asked for it. */
  #shown<T extends Pick<Summary, 'policies'>>(shown: T): T {
    if (this.#isAsked || this.#hasPi) return shown
    const { pi: _, ...policies } = shown.policies
    return { ...shown, policies }
  }

  /** Says what could not be read. */
  tellProblems(): void {
    for (const line of leftOutLines(this.#leftOut, this.#sums.summary())) tell(plain(line))
    for (const problem of this.problems) tell(plain(problemLine(problem)))
    if (this.sessions === 0 && this.problems.length === 0) tell('there is no session to replay')
  }

  async #one(file: string, progress: (part: number) => void): Promise<SessionReport | undefined> {
    try {
      const recording = await openRecording(file)
      // A baseline is compared file by file, whatever else is replayed.
      const charged = this.#holds ? new Set<string>() : this.#charged
      const found = await survey(
        recording,
        (problem) => this.problems.push(problem),
        charged,
        (call) => this.#throughGateway(call),
        this.#options.models,
      )
      if (found.calls === 0) {
        const isCopy = found.repeated.size > 0
        const message = isCopy ? 'all of its model calls are in other files, too' : 'no model call, nothing to replay'
        this.#leftOut.push({
          file,
          message,
          ...(isCopy && { repeated: { calls: found.repeated.size, cost: found.repeatedCost } }),
          ...(found.side.calls > 0 && found.side),
        })
        return undefined
      }
      found.unitsPerToken = this.#scale.unitsPerToken ?? found.unitsPerToken
      found.systemTokens = this.#scale.systemTokens ?? found.systemTokens
      found.isScaled = this.#scale.unitsPerToken !== undefined || this.#scale.systemTokens !== undefined
      const all = found.calls + found.repeated.size
      return await replaySession(recording, found, this.#options, (calls) => progress(calls / all))
    } catch (error) {
      if (error instanceof LeftOut) this.#leftOut.push(await leftOutOf(file, error, this.#charged, this.#noted, this.#options.models))
      else this.problems.push({ file, message: reason(error), fatal: true })
      return undefined
    }
  }

  /** The gateway's note of a call; undefined for one that did not go through. */
  #throughGateway({ usage, at }: PaidCall): NotedCall | undefined {
    const noted = usage === undefined ? undefined : this.#noted.take({ tokens: usage, at })
    if (noted === undefined) return undefined
    const { isManaged, savedTokens, saved, plan } = noted
    return { ...(isManaged && { saved: { tokens: savedTokens, dollars: saved } }), ...(plan !== undefined && { plan }) }
  }

  #take(report: SessionReport): void {
    this.#sums.add(report)
    this.#single = this.sessions === 1 ? report : undefined
    this.#hasPi ||= report.format === 'pi'
    const row = rowOf(report)
    if (row !== undefined) this.#rows.push(row)
    if (this.#holds) {
      const { file, policies, regime, paid } = report
      this.held.push({ file, policies, regime, ...(paid !== undefined && { paid }) })
    }
  }
}

/** Says what is worse than in a baseline; returns whether anything is. */
function tellWorse({ worse, unknown }: ReturnType<typeof compare>, file: string): boolean {
  for (const name of unknown) tell(plain(`${name}: not in the baseline`))
  for (const line of worse) tell(plain(`worse: ${line}`))
  if (worse.length === 0) tell(plain(`no figure is worse than in ${file}`))
  return worse.length > 0
}

/** A report whose names can't start a new line or control the terminal. */
function named(report: SessionReport): SessionReport {
  const skipped = Object.fromEntries(Object.entries(report.skipped).map(([kind, count]) => [plain(kind), count]))
  return { ...report, file: plain(report.file), models: report.models.map(plain), skipped }
}

function filesOf(paths: readonly string[], used: readonly string[], report: (problem: Problem) => void): Promise<string[]> {
  return allSessionFiles(paths, (path, error) => {
    if (error !== undefined || !used.includes(path))
      report({ file: path, message: error === undefined ? 'the folder holds no session file' : reason(error), fatal: true })
  })
}

/** The share of the work that goes into learning phrases, before the replay. */
const LEARNING = 0.15

/** The finished part of the work, by file size. */
class Work {
  /** Bytes before each file, and all. */
  readonly #before: number[]
  readonly #all: number

  constructor(files: readonly string[]) {
    let sum = 0
    this.#before = files.map((file) => {
      const before = sum
      sum += statOf(file)?.size ?? 0
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

/** The facts about a conversation that is left out but was paid for. */
async function leftOutOf(
  file: string,
  { message, recording }: LeftOut,
  charged: Charged,
  noted: NotedCalls,
  given?: PricesByModel,
): Promise<JsonReport['leftOut'][number]> {
  if (recording === undefined) return { file, message }
  const paid = { calls: 0, cost: 0 }
  for await (const charge of chargesOf(recording, charged, undefined, given)) {
    const { calls, cost = 0, isUnbilled, plan = noted.take(charge)?.plan } = charge
    if (isUnbilled === true) continue
    paid.calls += calls
    paid.cost += plan === undefined ? cost : 0
  }
  return { file, message, ...(paid.calls > 0 && paid) }
}

function reason(error: unknown): string {
  if (error instanceof NotReplayable) return error.message
  const { code, message } = error as { code?: string; message?: string }
  if (code === 'ENOENT') return 'it does not exist'
  if (code === 'EACCES') return 'it may not be read (permission denied)'
  return `it could not be replayed: ${message ?? String(error)}`
}
