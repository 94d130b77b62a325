/** The command `mcp`. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { areMounts, FILESYSTEM_ID_WANTED, isFilesystemId, MOUNTS_WANTED, mountsIn, mountsRefused } from '../core/index.ts'
import type { ClientPaths } from '../mcp/index.ts'
import { exitHelp } from './exit.ts'
import { ambiguous } from './objects.ts'
import { inStore } from '../native/index.ts'
import { reading, STORE_HELP, storeOf } from './store.ts'
import { plain, tell, UsageError } from '../ui/index.ts'

export const MCP_HELP = `pi-context-manager mcp --session ID [options]

Serves sessions of a store to any MCP client over standard input and output,
read-only, with the tools sessions, search, show and log. Needs the package
@modelcontextprotocol/sdk.

${STORE_HELP}
  --session ID          a session whose turns and tool outputs to show, or a
                        beginning of its ID; can be repeated
  --folder DIR          also show the sessions' files in this folder; can be
                        repeated
  --mounts JSON         for a client whose tools run in a sandbox: a list of
                        {"agentPrefix", "canonicalPrefix", "filesystemId"}, as
                        Pi's setting; --folder then names paths of its tools
  --filesystem-id ID    the filesystem of all paths that no mount covers, for
                        instance a container's ID

${exitHelp(undefined, 'the client has disconnected')}`

export const MCP_OPTIONS = {
  store: { type: 'string' },
  session: { type: 'string', multiple: true },
  folder: { type: 'string', multiple: true },
  mounts: { type: 'string' },
  'filesystem-id': { type: 'string' },
} as const

/** Runs the command until the client disconnects. Resolves with the exit code. */
export async function mcp(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: MCP_OPTIONS })
  const { session: sessions = [], folder: folders = [] } = values
  const paths = pathsIn(values)
  if (sessions.length === 0) throw new UsageError('mcp shows only the sessions that you name; add --session ID')
  const named = storeOf(values.store)
  const { options, name } = named
  const known = await reading(named, (readable) => inStore(readable.options, (store) => store.sessions()))
  const whole = sessions.map((given) => {
    const found = known.map(({ id }) => id).filter((id) => id.startsWith(given))
    if (found.length > 1 && !found.includes(given)) throw ambiguous(given, found)
    // One that begins later has to be named in full.
    if (found.length === 0) tell(plain(`${name} has no session ${given} yet; "sessions" lists them`))
    return found.length === 1 ? (found[0] as string) : given
  })
  const { StdioServerTransport } = await sdk(() => import('@modelcontextprotocol/sdk/server/stdio.js'))
  const { LimitedStore, serverOf, unanswered } = await sdk(() => import('../mcp/index.ts'))
  const store = new LimitedStore(options, { sessions: whole, folders, paths })
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  const server = serverOf(store, version)
  const transport = new StdioServerTransport()
  const answered = unanswered(transport)
  const ended = new Promise<void>((resolve) => {
    server.onclose = resolve
    process.stdin.on('end', () => void answered().then(() => server.close()))
  })
  await server.connect(transport)
  await ended
  return 0
}

/** The paths of the client's tools. Throws a {@link UsageError}. */
function pathsIn({ mounts: text, 'filesystem-id': filesystemId }: { mounts?: string | undefined; 'filesystem-id'?: string | undefined }): ClientPaths {
  if (filesystemId !== undefined && !isFilesystemId(filesystemId)) throw new UsageError(`--filesystem-id needs ${FILESYSTEM_ID_WANTED}`)
  const own = filesystemId === undefined ? {} : { filesystemId }
  if (text === undefined) return own
  let mounts: unknown
  try {
    mounts = JSON.parse(text)
  } catch {
    // A text that is not JSON is refused below.
  }
  const refused = mountsRefused(mounts)
  if (refused !== undefined) throw new UsageError(`--mounts ${refused}`)
  if (!areMounts(mounts)) throw new UsageError(`--mounts needs ${MOUNTS_WANTED}, as JSON`)
  return { mounts: mountsIn(mounts), ...own }
}

async function sdk<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UsageError('mcp needs a package that is not installed: npm install @modelcontextprotocol/sdk')
  }
}
