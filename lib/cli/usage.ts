/** The command `usage`. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { isThere } from '../core/index.ts'
import { hostSession } from '../gateway/index.ts'
import {
  accountText,
  counted,
  dayOf,
  dollars,
  fitted,
  middleCut,
  NotFound,
  percent,
  plain,
  Progress,
  reasonOf,
  savingCell,
  savingText,
  shareCell,
  shortened,
  shown,
  suggestion,
  tell,
  tokens,
  UsageError,
  widthOf,
  wrapped,
} from '../ui/index.ts'
import { allSessionFiles, openAny } from '../recordings/index.ts'
import { doubtsLine, repeatedLine } from '../replay/index.ts'
import type { Charged, Format, PricesByModel } from '../recordings/index.ts'
import { chargesOf, folderNames, gatewayCharges, GROUPS, HoldoutSums, LifetimeSums, ListedCalls, NotedCalls, Sums, usedFolders } from '../usage/index.ts'
import type { Charge, LifetimeChoices, Comparison, Group, Repeated, Sum } from '../usage/index.ts'
import { DONE, exitHelp, NONE } from './exit.ts'
import { worksIn } from './look.ts'
import { modelsIn, PRICES_HELP } from './models-file.ts'
import { paged } from './pager.ts'
import type { Paint } from './pager.ts'
import { inStore } from '../native/index.ts'
import { pathsNamed } from './session-file.ts'
import { billsBeside, reading, STORE_HELP } from './store.ts'

export const USAGE_HELP = `pi-context-manager usage [options] [FILE|FOLDER|SESSION...]

Shows what your sessions cost, and what the context manager saved, by day,
project, model or session. Costs come from the session files, or from the
provider's token counts and the model's prices; tokens cached for an hour cost
twice as much as fresh input. Savings are the context manager's own account,
call by call. Without FILE, it reads the sessions of Pi, Claude Code, Codex,
Gemini CLI and OpenCode, those of their subagents, and the gateway's bills. A
call that is in several of them counts once.

  --by GROUP            day (default), project, model or session
  --since WHEN          only from this day on: 2026-01-31, or 7d, 4w, 6m, 1y
                        back from now
  --project DIR         only sessions that worked in this folder or below it
  --json                the sums as JSON
${PRICES_HELP}
${STORE_HELP}. The gateway's
                        bills are beside it; sessions of the store without one
                        are counted.

If some sessions were left plain (the setting "holdout", or the gateway's
--holdout), both kinds are compared by what a call cost, or sent on a plan.

"without" is what the same would have cost without the context manager, with the
agent's own summaries; "share" is the saved share of that. The bar shows what
was paid (█) and saved (░). Calls on a plan at a flat rate count in tokens.

${exitHelp('there is nothing to show')}`

export const USAGE_OPTIONS = {
  by: { type: 'string', default: 'day' },
  since: { type: 'string' },
  project: { type: 'string' },
  json: { type: 'boolean' },
  models: { type: 'string' },
  store: { type: 'string' },
} as const

/** Runs the command; resolves with the exit code. */
export async function usage(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: USAGE_OPTIONS, allowPositionals: true })
  const group = groupOf(values.by)
  const since = values.since === undefined ? 0 : sinceOf(values.since, Date.now())
  const isWanted = worksIn(values.project)
  const gatewayFile = positionals.length > 0 ? undefined : billsBeside(values.store)
  const given = values.models === undefined ? {} : modelsIn(values.models)
  const left: LeftOut = { count: 0 }
  const hasBills = gatewayFile !== undefined && mayBeThere(gatewayFile)
  const files = positionals.length > 0 ? await filesOf(positionals, left) : await ownFiles(hasBills, left)
  const sums = new Sums(group)
  const holdout = new HoldoutSums()
  const lifetimes = new LifetimeSums()
  const charged: Charged = new Set()
  const repeated: Repeated = { calls: 0, cost: 0 }
  const billed = new Set<string>()
  const progress = new Progress()
  const add = (charge: Charge): boolean => {
    billed.add(charge.session)
    if (charge.at < since || !isWanted(charge.folder)) return false
    sums.add(charge)
    holdout.add(charge)
    lifetimes.add(charge)
    return true
  }
  let unread = 0
  const noted = new NotedCalls()
  const listed = new ListedCalls()
  if (gatewayFile !== undefined) {
    await orLeftOut(gatewayFile, left, async () => {
      for await (const charge of gatewayCharges(gatewayFile, () => (unread += 1))) {
        noted.add(charge)
        add(charge)
      }
    })
  }
  for (const [index, file] of files.entries()) {
    progress.show(index / files.length, file)
    await orLeftOut(file, left, () =>
      addFile(file, { charged, repeated, given }, (charge, format) => {
        if (noted.take(charge) !== undefined || !add({ ...charge, session: noted.nameOf(charge.session) })) return
        listed.add(charge, format)
      }),
    )
  }
  progress.clear()
  const [rows, total] = [sums.rows(), sums.total()]
  const compared = holdout.comparisons()
  const unbilled = await unbilledIn({ store: values.store, hasBills }, billed, since, isWanted)
  await paged(async (write, paint) => {
    if (values.json === true) {
      const about = values.since === undefined ? {} : { since: dayOf(since) }
      return write(
        shown(
          JSON.stringify({ by: group, ...about, rows, total, holdout: compared, lifetimes: lifetimes.sums, sessionsWithoutBill: unbilled, repeated }, null, 2),
        ),
      )
    }
    for (const line of tableOf(group, rows, total, paint)) await write(line)
    for (const line of [...planLines(total), ...lifetimeLines(lifetimes.sums), ...compared.flatMap(comparedLines)]) await write(line)
  })
  if (unread > 0) tell(`${counted(unread, 'line')} of the gateway's notes can't be read; what ${unread === 1 ? 'its call' : 'their calls'} cost is missing`)
  if (values.json !== true) {
    if (total.calls === 0)
      tell(
        nothingLine(
          left,
          ['since', 'project'].filter((name) => name in values),
        ),
      )
    tellNotes(total, unbilled, repeated)
    for (const line of listed.lines()) tell(line)
  }
  return total.calls === 0 ? NONE : DONE
}

/** The number of files and folders that could not be read. */
interface LeftOut {
  count: number
}

/** The sentence where there is nothing to show. `options`: those that leave out calls. */
function nothingLine({ count }: LeftOut, options: readonly string[]): string {
  if (count > 0) return `found no model calls in the files that could be read; the ${count === 1 ? 'one' : count} left out may have some`
  if (options.length === 0) return 'found no model calls to sum up'
  const names = options.map((name) => `"--${name}"`).join(' and ')
  return `found no model calls to sum up; ${names} may leave out all of them`
}

async function filesOf(given: readonly string[], left: LeftOut): Promise<string[]> {
  const paths = await pathsNamed(given)
  for (const [at, path] of paths.entries()) {
    if (path === given[at] && !existsSync(path)) throw new NotFound(`the session file or folder ${path} does not exist`)
  }
  return allSessionFiles(paths, (path, error) => {
    if (error !== undefined && paths.includes(path)) throw error
    if (error === undefined) tell(plain(`${path}: the folder holds no session file`))
    tellUnreadable(path, left, error)
  })
}

/** The session files of all agents. `isGatewayUsed`: there is something to sum up without them. */
async function ownFiles(isGatewayUsed: boolean, left: LeftOut): Promise<string[]> {
  const folders = usedFolders().map(({ path }) => path)
  if (folders.length === 0 && !isGatewayUsed) throw new NotFound(`there are no sessions in ${folderNames()}; name a file or folder, or use an agent first`)
  return allSessionFiles(folders, (path, error) => tellUnreadable(path, left, error))
}

/** True if there is a file, or if that can't be seen. */
function mayBeThere(path: string): boolean {
  try {
    return isThere(path)
  } catch {
    return true
  }
}

function tellUnreadable(path: string, left: LeftOut, error?: unknown): void {
  if (error === undefined) return
  left.count += 1
  // The system's own message has the path once more.
  const isOfSystem = (error as NodeJS.ErrnoException).syscall !== undefined
  tell(plain(`left out: ${path}: ${isOfSystem ? reasonOf(error) : (error as Error).message}`))
}

/** Reads a file; if that fails, one line says so. */
async function orLeftOut(path: string, left: LeftOut, read: () => Promise<void>): Promise<void> {
  try {
    await read()
  } catch (error) {
    tellUnreadable(path, left, error)
  }
}

/** The circumstances of a file: the calls so far, and the user's own prices. */
interface Around {
  charged: Charged
  repeated: Repeated
  given: PricesByModel
}

async function addFile(file: string, { charged, repeated, given }: Around, add: (charge: Charge, format: Format) => void): Promise<void> {
  const recording = await openAny(file)
  for await (const charge of chargesOf(recording, charged, repeated, given)) add(charge, recording.origin.format)
}

/**
 * The number of the store's sessions without a bill in any file; undefined without a store, and for the usual one if it can't be read.
 * A store that was named may not have been made yet if the gateway's bills beside it are there (`hasBills`): all may have been held out.
 */
async function unbilledIn(
  { store, hasBills }: { store: string | undefined; hasBills: boolean },
  billed: ReadonlySet<string>,
  since: number,
  isWanted: (folder: string | undefined) => boolean,
): Promise<number | undefined> {
  try {
    return await reading(store, async ({ options }) => {
      const all = await inStore(options, (opened) => opened.sessions())
      const wanted = all.filter(({ lastWritten, folder }) => Date.parse(lastWritten) >= since && isWanted(folder))
      return wanted.filter(({ id, turns }) => turns > 0 && ![id, hostSession(id), hostSession(id).replace(/^[a-z-]+:/, '')].some((name) => billed.has(name)))
        .length
    })
  } catch (error) {
    if (store !== undefined && !(hasBills && error instanceof UsageError)) throw error
    if (!(error instanceof UsageError)) tell(plain(`what is only in the store is not counted: ${(error as Error).message}`))
    return undefined
  }
}

function tellNotes({ calls, unpricedCalls, unbilledCalls, doubtfulCalls, savedTokens }: Sum, unbilled: number | undefined, repeated: Repeated): void {
  const saving = Math.round(savedTokens) === 0 ? '' : `; in tokens, all calls together ${savingText(savedTokens, (some) => `${tokens(some)} of fresh input`)}`
  if (unpricedCalls > 0) tell(`${unpricedCalls} of ${calls} calls are of models without known prices and count as $0${saving}`)
  if (unbilledCalls > 0)
    tell(`${unbilledCalls} of ${calls} calls ${unbilledCalls === 1 ? 'has' : 'have'} no bill: nothing in the answer tells what it cost, so it counts as $0`)
  for (const line of [...doubtsLine(doubtfulCalls, calls), ...repeatedLine(repeated)]) tell(line)
  if (unbilled !== undefined && unbilled > 0)
    tell(
      `${unbilled} ${unbilled === 1 ? 'session' : 'sessions'} of the store ${unbilled === 1 ? 'is' : 'are'} not in these files, so what ${unbilled === 1 ? 'it' : 'they'} cost is not known`,
    )
}

/** The account of the calls made with a plan, as a line; none without such calls. */
function planLines({ calls, plan: { calls: some, sent, without } }: Sum): string[] {
  if (some === 0) return []
  const account = accountText({ paid: sent, without }, (count) => `${tokens(count)} tokens`, 'sent')
  return [
    '',
    ...wrapped(
      `${some === calls ? 'These calls were' : `${some} of ${calls} calls were`} made on a plan at a flat rate, and count in tokens: ${account}`,
      Math.max(80, widthOf(process.stdout)),
    ),
  ]
}

/** The lifetimes of the cache that the gateway has chosen, in lines; none without a choice. */
function lifetimeLines(sums: LifetimeChoices | undefined): string[] {
  if (sums === undefined) return []
  const { calls, saved, savedTokens, reasons } = sums
  const account = saved === 0 && savedTokens !== 0 ? savingText(savedTokens, (some) => `${tokens(some)} fresh tokens`) : savingText(saved, dollars)
  const width = Math.max(80, widthOf(process.stdout))
  const head = `The gateway chose how long Anthropic keeps the cache of ${calls} ${calls === 1 ? 'call' : 'calls'}; that ${account}, which is part of what was saved:`
  return ['', ...wrapped(head, width), ...reasons.flatMap(({ why, calls: some }) => wrapped(`  ${some} of ${calls}: ${plain(why)}`, width))]
}

/** The comparison with the sessions that were left plain, as a sentence in lines of at most 80 columns. */
function comparedLines({ unit, plain: left, managed, ratio, interval }: Comparison): string[] {
  const written = (cost: number): string => (unit === 'dollars' ? dollars(cost) : `${tokens(cost)} tokens`)
  const arm = (name: string, { sessions, perCall }: Comparison['plain']): string =>
    `${name.padEnd(20)} ${written(perCall)} a call, ${sessions} ${sessions === 1 ? 'session' : 'sessions'}${unit === 'dollars' ? '' : ' on a plan'}`
  const verdict =
    interval === undefined
      ? 'Too few sessions for an interval: it takes at least two of each kind.'
      : `A call ${unit === 'dollars' ? 'cost' : 'sent'} ${percent(ratio)} of a plain one (95 % interval: ${percent(interval[0])} to ${percent(interval[1])}).` +
        (interval[0] < 1 && interval[1] > 1 ? ' That may be chance.' : '')
  return ['', arm('left plain', left), arm('context manager', managed), verdict]
}

/** The fewest characters of a session's folder. */
const LEAST_FOLDER = 8

const HEADS: Readonly<Record<Group, string>> = { day: 'day', project: 'project', model: 'model', session: 'session' }

/** The longest name of a group, in characters. */
const LONGEST_KEY = 28

/** The least and the most width of a bar, in characters. */
const BAR = { least: 5, most: 40 }

function tableOf(group: Group, rows: readonly Sum[], total: Sum, paint: Paint): string[] {
  if (rows.length === 0) return []
  const names = group === 'session' ? shortened(rows.map(({ key }) => key)) : undefined
  const nameOf = ({ key, folder }: Sum): string => {
    const session = names?.get(key)
    // The ID stays whole, because commands take it.
    if (session !== undefined) return plain(`${session} ${middleCut(basename(folder), Math.max(LEAST_FOLDER, LONGEST_KEY - session.length - 1))}`)
    return plain(middleCut(group === 'project' ? basename(key) || key || 'not known' : key, LONGEST_KEY))
  }
  const heads = [HEADS[group], ...(group === 'session' ? [] : ['sessions']), 'calls', 'sent', 'cached', 'paid', 'without', 'saved', 'share']
  const cells = fitted([heads, ...rows.map((row) => cellsOf(nameOf(row), row, group)), cellsOf('total', total, group)], widthOf(process.stdout), SPARE)
  const width = Math.max(...cells.map((line) => line.length))
  const room = Math.min(BAR.most, widthOf(process.stdout) - width - 2)
  const most = Math.max(...rows.map(({ cost, plainCost }) => Math.max(cost, plainCost)))
  const bars = rows.map((row) => (room < BAR.least || most <= 0 ? '' : barOf(row, room / most, paint)))
  return cells.map((line, at) => {
    if (at === 0) return paint.dim(line)
    const bar = bars[at - 1]
    return bar === undefined || bar === '' ? line : `${line.padEnd(width)}  ${bar}`
  })
}

/** Columns that a narrow terminal does without, the first one first. */
const SPARE = ['sessions', 'cached', 'sent', 'calls']

function cellsOf(name: string, { sessions, calls, tokens: used, cost, saved, plainCost, plan, unbilledCalls }: Sum, group: Group): string[] {
  const prompt = used.input + used.cacheRead + used.cacheWrite
  return [
    name,
    ...(group === 'session' ? [] : [String(sessions)]),
    calls.toLocaleString('en-US'),
    tokens(prompt),
    prompt === 0 ? '-' : `${Math.round((100 * used.cacheRead) / prompt)} %`,
    ...(plan.calls > 0 && plan.calls + unbilledCalls === calls
      ? planCells(plan)
      : [dollars(cost), dollars(plainCost), saved === 0 ? '-' : savingCell(saved, dollars), saved === 0 || plainCost <= 0 ? '-' : shareCell(cost / plainCost)]),
  ]
}

/** The last cells where all calls were made on a plan: tokens, which stand in `sent`, too. */
function planCells({ sent, without }: Sum['plan']): string[] {
  const saved = without - sent
  return [
    'plan',
    tokens(without),
    Math.round(saved) === 0 ? '-' : savingCell(saved, tokens),
    without <= 0 || Math.round(saved) === 0 ? '-' : shareCell(sent / without),
  ]
}

function barOf({ cost, saved }: Sum, scale: number, paint: Paint): string {
  return `${paint.path('█'.repeat(Math.round(cost * scale)))}${paint.added('░'.repeat(Math.max(0, Math.round(saved * scale))))}`
}

function groupOf(text: string): Group {
  const group = GROUPS.find((one) => one === text)
  if (group === undefined) throw new UsageError(`--by is ${GROUPS.join(', ')}, not "${text}"${suggestion(text, GROUPS)}`)
  return group
}

const DAYS: Readonly<Record<string, number>> = { d: 1, w: 7, m: 30, y: 365 }

/** The beginning of a day, in milliseconds since the epoch. */
export function sinceOf(text: string, now: number): number {
  const [, number, unit = ''] = /^(\d{1,4})([dwmy])$/.exec(text) ?? []
  const [, year, month, day] = /^(\d{4})-?(\d\d)-?(\d\d)$/.exec(text) ?? []
  const at = number !== undefined ? new Date(now - Number(number) * (DAYS[unit] ?? 1) * 86_400_000) : new Date(Number(year), Number(month) - 1, Number(day))
  const isDay = year === undefined || (at.getMonth() === Number(month) - 1 && at.getDate() === Number(day))
  if (Number.isNaN(at.getTime()) || !isDay) throw new UsageError(`--since needs a day such as 2026-01-31, or an age such as 7d, 4w, 6m or 1y, not "${text}"`)
  return at.setHours(0, 0, 0, 0)
}
