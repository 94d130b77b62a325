/** The commands `prune` and `limits`. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Pruned, SessionSummary, StoreLimits } from '../../index.js'
import { realOf } from '../core/index.ts'
import { forgetForms } from '../gateway/index.ts'
import { out, plain, size, UsageError, when } from '../ui/index.ts'
import { exitHelp } from './exit.ts'
import { inStore } from '../native/index.ts'
import { ownedStoreOf, STORE_HELP, storeOf } from './store.ts'
import { tellUnsent } from './unsent.ts'

export const PRUNE_HELP = `pi-context-manager prune [options]

Removes sessions from a store, with the files and tool outputs that no other
session has encountered. Sessions that were written or opened within the last
day stay. To keep a copy, run "export --session ID" first.

${STORE_HELP}
  --older-than AGE      sessions that have not been written or opened for this
                        long: 90d, 12w, 6m, 1y
  --max-size SIZE       the oldest sessions, until the store uses no more than
                        this: 500MB, 2GB
  --project DIR         only sessions that worked in this folder or below it
  --dry-run             only show what would be removed, and how much space that
                        frees
  --json                the result as JSON

${exitHelp()}`

export const LIMITS_HELP = `pi-context-manager limits [options]

Shows or sets the limits of a store. Sessions beyond them are removed
automatically, as by "prune", while the store is open and idle. Without limits
nothing is ever removed.

${STORE_HELP}
  --older-than AGE      remove sessions that have not been written or opened for
                        this long: 90d, 12w, 6m, 1y
  --max-size SIZE       remove the oldest sessions while the store uses more
                        than this: 500MB, 2GB
  --none                remove all limits
  --json                the limits as JSON

${exitHelp()}`

const SHARED = {
  store: { type: 'string' },
  'older-than': { type: 'string' },
  'max-size': { type: 'string' },
  json: { type: 'boolean' },
} as const

export const PRUNE_OPTIONS = { ...SHARED, project: { type: 'string' }, 'dry-run': { type: 'boolean' } } as const
export const LIMITS_OPTIONS = { ...SHARED, none: { type: 'boolean' } } as const

/** Runs `prune`; resolves with the exit code. */
export async function prune(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: PRUNE_OPTIONS })
  const { 'older-than': age, 'max-size': most, project } = values
  if (age === undefined && most === undefined && project === undefined) throw new UsageError('say what to remove: --older-than, --max-size or --project')
  const { options, name } = ownedStoreOf(values.store)
  const wanted = {
    ...(age === undefined ? {} : { olderThanDays: daysOf(age) }),
    ...(most === undefined ? {} : { maxBytes: bytesOf(most) }),
    dryRun: values['dry-run'] === true,
  }
  const pruned = await inStore(
    options,
    async (store) => store.prune(project === undefined ? wanted : { ...wanted, project: await recordedOf(store, project) }),
    tellUnsent,
  )
  if (!wanted.dryRun) forgetForms(options, new Set(pruned.sessions.map(({ id }) => id)))
  if (values.json === true) out(JSON.stringify(pruned, null, 2))
  else print(pruned, name, values['dry-run'] === true)
  return 0
}

/** A project's folder as the store's sessions name it: with its links followed, or as it was given where only that is recorded. */
async function recordedOf(store: { sessions(): Promise<SessionSummary[]> }, project: string): Promise<string> {
  const [given, real] = [resolve(project), realOf(project)]
  if (given === real) return real
  const folders = (await store.sessions()).map(({ folder }) => folder ?? '')
  const has = (path: string): boolean => folders.some((folder) => folder === path || folder.startsWith(`${path}/`))
  return has(given) && !has(real) ? given : real
}

function print({ sessions, objects, freedBytes, usedBytes, isShorter }: Pruned, name: string, isDry: boolean): void {
  for (const { id, turns, lastWritten, folder, firstPrompt } of sessions) {
    const about = [folder, firstPrompt].filter((text) => text !== undefined).join('  ')
    out(plain(`${when(lastWritten)}  ${String(turns).padStart(4)} ${turns === 1 ? 'turn ' : 'turns'}  ${id}  ${about}`))
  }
  const what = `${sessions.length} ${sessions.length === 1 ? 'session' : 'sessions'} with ${objects} objects, about ${size(freedBytes)} of ${size(usedBytes)}`
  if (sessions.length === 0) out(plain(`${name}: nothing to remove (${size(usedBytes)} in use; sessions of the last day stay)`))
  else if (isDry) out(plain(`${name}: would remove ${what}`))
  else if (isShorter) out(plain(`${name}: removed ${what}`))
  else out(plain(`${name}: removed ${what}; the file keeps its size, and new data uses the free space`))
}

/** Bytes. A store that exceeds its limit by its own tables would lose every session after a day. */
const SMALLEST_LIMIT = 1024 ** 2

/** Runs `limits`; resolves with the exit code. */
export async function limits(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: LIMITS_OPTIONS })
  const { 'older-than': age, 'max-size': most, none } = values
  if (none === true && (age !== undefined || most !== undefined)) throw new UsageError('--none goes with no other limit')
  if (most !== undefined && bytesOf(most) < SMALLEST_LIMIT)
    throw new UsageError(`--max-size of a limit starts at ${size(SMALLEST_LIMIT)}; "prune --max-size" removes what is there once`)
  const { options, name } = storeOf(values.store)
  if (options.kind !== 'sqlite') throw new Error('only a database file keeps to limits by itself; on XTDB, run "prune" when you want it')
  const now = await inStore(options, async (store): Promise<StoreLimits> => {
    const before = await store.limits()
    if (none !== true && age === undefined && most === undefined) return before
    const given = {
      ...(age === undefined ? {} : { maxDays: daysOf(age) }),
      ...(most === undefined ? {} : { maxBytes: bytesOf(most) }),
    }
    await store.setLimits(none === true ? {} : { ...before, ...given })
    return await store.limits()
  })
  if (values.json === true) {
    out(JSON.stringify(now))
    return 0
  }
  const parts = [
    now.maxDays === undefined ? [] : [`sessions not opened for ${now.maxDays} days`],
    now.maxBytes === undefined ? [] : [`the oldest sessions while it uses more than ${size(now.maxBytes)}`],
  ].flat()
  out(plain(`${name}: ${parts.length === 0 ? 'no limits; nothing is removed automatically' : `removes ${parts.join(', and ')}`}`))
  return 0
}

const DAYS: Readonly<Record<string, number>> = { d: 1, w: 7, m: 30, y: 365 }

function daysOf(text: string): number {
  const [, number, unit] = /^(\d{1,5})([dwmy])$/.exec(text) ?? []
  const days = Number(number) * (DAYS[unit ?? ''] ?? Number.NaN)
  if (!(days >= 1)) throw new UsageError(`--older-than needs an age from 1d on, such as 90d, 12w, 6m or 1y, not "${text}"`)
  return days
}

const UNITS = ['', 'K', 'M', 'G', 'T']

function bytesOf(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text) ?? []
  const bytes = Math.floor(Number(number) * 1024 ** UNITS.indexOf((unit ?? '').toUpperCase()))
  if (!Number.isSafeInteger(bytes)) throw new UsageError(`--max-size needs a size such as 500MB or 2GB, not "${text}"`)
  return bytes
}
