/** The command `why`. */
import { statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { countOf, dollars, NotFound, plain, reasonOf, shown, tokens as short, UsageError, when, widthOf, wrapped } from '../ui/index.ts'
import { callsBack } from '../models/index.ts'
import { openAny, piSessionFolder } from '../recordings/index.ts'
import type { PricesByModel } from '../recordings/index.ts'
import { agentFolders, cacheHistory, causesText, filesOfSession, gatewayHistories } from '../usage/index.ts'
import type { CacheBreak, CacheHistory } from '../usage/index.ts'
import { DONE, exitHelp, NONE } from './exit.ts'
import { modelsIn, PRICES_HELP } from './models-file.ts'
import { paged } from './pager.ts'
import { ambiguous, isBehindAgent } from './objects.ts'
import { billsBeside, STORE_HELP } from './store.ts'

export const WHY_HELP = `pi-context-manager why [options] SESSION|FILE

Says why the provider processed tokens again that the call before had already
sent, when, and at what cost, newest first. SESSION is the ID of a session of
Pi, of the gateway, of Claude Code, Codex, Gemini CLI or OpenCode, or its
beginning, as "sessions", "usage --by session" and "replay" show it; FILE is any
session file that "replay" reads.

  --limit N             at most N of them (default 6)
  --json                all of them as JSON
${PRICES_HELP}
${STORE_HELP}; the
                        gateway's figures are beside it

${exitHelp('the session does not exist')}`

export const WHY_OPTIONS = { store: { type: 'string' }, limit: { type: 'string' }, models: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs the command; resolves with the exit code. */
export async function why(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: WHY_OPTIONS, allowPositionals: true })
  const limit = countOf('limit', values.limit, 6, 1)
  const [given] = positionals
  if (given === undefined || positionals.length > 1)
    throw new UsageError('why needs one session or session file; "sessions" and "usage --by session" list them')
  const history = await historyOf(given, values.store, values.models === undefined ? {} : modelsIn(values.models))
  await paged(async (write) => {
    if (values.json === true) return write(shown(JSON.stringify(history, null, 2)))
    const { calls, isKnown, breaks } = history
    if (calls === 0) return write('There has been no model call in this session.')
    if (!isKnown) return write('The provider has not reported any use of its cache in this session, so nothing is known.')
    if (breaks.length === 0) return write(`Nothing broke the cached prompt in ${calls} calls.`)
    if (breaks.length > 1) await write(wrapped(`${breaks.length} times in ${calls} calls: ${causesText(breaks)}.`, widthOf(process.stdout), '  ').join('\n'))
    for (const one of breaks.slice(0, limit)) await write(wrapped(lineOf(one), widthOf(process.stdout), '  ').join('\n'))
    const left = breaks.length - limit
    if (left > 0) await write(`${left} earlier ones: --limit ${breaks.length} shows them all.`)
  })
  return history.calls === 0 ? NONE : DONE
}

function lineOf({ callsAgo, at, tokens, cost, causes }: CacheBreak): string {
  const ago = callsAgo === 0 ? 'At the last call' : callsBack(callsAgo)
  const price = cost === undefined ? '' : `, ${dollars(cost)}`
  return plain(`${ago} (${when(new Date(at).toISOString())}), ${short(tokens)} tokens written again${price}: ${causes.join(' ')}`)
}

/** The history that a name means: a session file, a session of Pi's, of the gateway's, or of another agent's. */
async function historyOf(given: string, store: string | undefined, prices: PricesByModel): Promise<CacheHistory> {
  const found = statSync(given, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) throw new UsageError(`${given} is a folder; name one session file in it`)
  if (found !== undefined) return cacheHistory(await opened(given), prices)
  const [pi, ...others] = agentFolders()
  const ofPi = only(given, await filesOfSession([pi], given))
  if (ofPi !== undefined) return cacheHistory(await opened(ofPi), prices)
  const noted = billsBeside(store)
  const ofGateway = only(given, noted === undefined ? new Map() : await gatewayHistories(noted, (id) => id.startsWith(given) || isBehindAgent(id, given)))
  if (ofGateway !== undefined) return ofGateway
  const ofOthers = only(given, await filesOfSession(others, given))
  if (ofOthers !== undefined) return cacheHistory(await opened(ofOthers), prices)
  throw new NotFound(
    `no session file ${given} exists, and neither Pi's folder ${piSessionFolder()}, nor the gateway's figures, nor the folders of Claude Code, Codex, Gemini CLI and OpenCode have a session of that ID; "sessions" and "usage --by session" list them`,
  )
}

/** A session file. What the file system says about it comes with its path. */
async function opened(path: string): ReturnType<typeof openAny> {
  return openAny(path).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === undefined ? error : new UsageError(`${path} can't be read: ${reasonOf(error)}`)
  })
}

/** The only one, or the one that has exactly this ID. */
function only<T>(given: string, found: ReadonlyMap<string, T>): T | undefined {
  if (found.size > 1 && !found.has(given)) throw ambiguous(given, [...found.keys()])
  return found.get(given) ?? [...found.values()][0]
}
