/** The command `inspect`. */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { SessionSummary, StoreOptions } from '../../index.js'
import { ContextManager } from '../session/index.ts'
import { begin, END, rebuild, recordedRequest, sessionParts } from '../inspect/index.ts'
import { changeLines, countOf, needReplaceable, out, plain, requestChanges, tell, UsageError, when, widthOf, writePrivately } from '../ui/index.ts'
import { exitHelp } from './exit.ts'
import { sessionOf } from './objects.ts'
import { paged } from './pager.ts'
import { piSessionFile } from './pi-session.ts'
import { inStore } from '../native/index.ts'
import { reading, STORE_HELP } from './store.ts'
import type { NamedStore } from './store.ts'

export const INSPECT_HELP = `pi-context-manager inspect [options] [SESSION]

Lists the sessions of a store, or one of them. With --html it writes a page with
their turns and rolls, and with each object's versions, their differences and
the newest text. The store is not changed and may be in use.

${STORE_HELP}
  --session ID          only this session, as SESSION; a beginning of its ID
                        that no other has will do
  --html FILE           write the page, or replace an earlier one
  --json                the list as JSON

What the model was sent
  --call N              show what model call N was sent (counted from 0),
                        rebuilt byte for byte from Pi's session file, as JSON,
                        and what was lost of its reasoning. A negative N counts
                        from the last call, -1, and shows in words what was
                        replaced, shortened, removed and added. Needs --session
                        or --pi-session. A session of the gateway is rebuilt
                        from the store, without its system prompt.
  --changes, --json     with any N: in words; as JSON
  --pi-session FILE     Pi's session file (default: the one of --session in Pi's
                        own folder)

${exitHelp('the session does not exist')}`

export const INSPECT_OPTIONS = {
  store: { type: 'string' },
  session: { type: 'string' },
  html: { type: 'string' },
  json: { type: 'boolean' },
  call: { type: 'string' },
  changes: { type: 'boolean' },
  'pi-session': { type: 'string' },
} as const

/** Runs the command; resolves with the exit code. */
export async function inspect(args: string[]): Promise<number> {
  const { values: given, positionals } = parseArgs({ args: joined(args), options: INSPECT_OPTIONS, allowPositionals: true })
  const named = [...positionals, ...(given.session === undefined ? [] : [given.session])]
  if (named.length > 1) throw new UsageError(`inspect takes one session; ${named.length} were given`)
  const [session] = named
  const values = { ...given, ...(session === undefined ? {} : { session }) }
  if (values.call !== undefined) return showCall(values.call, values)
  if (values.html !== undefined) needReplaceable(values.html, 'a page')
  return reading(values.store, (store) => listed(store, values))
}

async function listed(store: NamedStore, values: { session?: string; html?: string; json?: boolean }): Promise<number> {
  const { options, name } = store
  const session = values.session === undefined ? undefined : await sessionOf(store, values.session)
  const all = await inStore(options, (store) => store.sessions())
  const sessions = all.filter(({ id }) => session === undefined || id === session)
  if (values.json === true) out(JSON.stringify(sessions, null, 2))
  else if (values.html === undefined) list(sessions, name)
  if (values.html === undefined) return 0
  const html = values.html
  await inStore(options, (store) =>
    writePrivately(html, async (write) => {
      write(begin(name, sessions))
      for (const { id } of sessions) for await (const part of sessionParts(store, id)) write(part)
      write(END)
    }),
  )
  tell(plain(`${html}: ${sessions.length} session${sessions.length === 1 ? '' : 's'} of ${name}`))
  return 0
}

/** A session of a store that is only read: in memory, so that looking at it changes nothing. Files are not accessed. */
function opened(store: StoreOptions, sessionId: string): Promise<ContextManager> {
  return ContextManager.open({ sessionId, cwd: '/', store, filesystemId: 'inspect', watch: false, watchUnmapped: false })
}

function list(sessions: readonly SessionSummary[], store: string): void {
  if (sessions.length === 0) {
    out(plain(`${store} has no sessions`))
    return
  }
  for (const { id, turns, objects, lastWritten, folder, firstPrompt } of sessions) {
    const about = [folder, firstPrompt].filter((text) => text !== undefined).join('  ')
    out(plain(`${when(lastWritten)}  ${String(turns).padStart(4)} turns  ${String(objects).padStart(5)} objects  ${id}  ${about}`.trimEnd()))
  }
}

/** A negative number is a value and not an option. */
function joined(args: readonly string[]): string[] {
  return args.flatMap((one, at) =>
    one === '--call' && /^-\d+$/.test(args[at + 1] ?? '') ? [`--call=${args[at + 1]}`] : args[at - 1] === '--call' && /^-\d+$/.test(one) ? [] : [one],
  )
}

interface CallOptions {
  store?: string
  session?: string
  'pi-session'?: string
  changes?: boolean
  json?: boolean
}

async function showCall(given: string, { store, session, 'pi-session': named, changes, json }: CallOptions): Promise<number> {
  const call = countOf('call', given, 0, -Number.MAX_SAFE_INTEGER)
  if (session === undefined && named === undefined) throw new UsageError('--call needs --session or --pi-session')
  const file = named ?? (await piSessionFile(session as string))
  if (file === undefined) return showRecorded(call, session as string, { store, isJson: json === true || (changes !== true && call >= 0) })
  if (!existsSync(file)) throw new UsageError(`${file} does not exist`)
  const { calls, request, written } = await rebuild(file, call)
  if (request === undefined) throw new UsageError(`${file} has ${calls} calls, counted from 0, so call ${call} does not exist`)
  if (json === true || (changes !== true && call >= 0)) out(JSON.stringify(request, null, 2))
  else {
    await paged(async (write) => {
      await write(plain(`Call ${request.call} of ${calls}, counted from 0: ${request.model}`))
      for (const line of changeLines(requestChanges(written, request.messages), widthOf(process.stdout))) await write(line)
    })
  }
  return 0
}

/** A request of a session that Pi has no file of: the store's record has it. */
async function showRecorded(number: number, given: string, { store, isJson }: { store: string | undefined; isJson: boolean }): Promise<number> {
  return reading(store, async (named) => {
    const session = await sessionOf(named, given)
    const manager = await opened(named.options, session)
    const { calls, call, request } = await recordedRequest(manager, number).finally(() => manager.close())
    if (request === undefined) throw new UsageError(`${session} has ${calls} calls, counted from 0, so call ${call} does not exist`)
    if (isJson) out(JSON.stringify({ session, call, messages: request.sent }, null, 2))
    else {
      await paged(async (write) => {
        await write(plain(`Call ${call} of ${calls}, counted from 0: ${session}`))
        for (const line of changeLines(requestChanges(request.written, request.sent), widthOf(process.stdout))) await write(line)
      })
    }
    return 0
  })
}
