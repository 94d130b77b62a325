/** The command `gateway`: a separate gateway, for editors and several programs. */
import { parseArgs } from 'node:util'
import type { Gateway } from '../gateway/index.ts'
import { baseUrlIn, mostHeld } from '../gateway/index.ts'
import { exitHelp } from './exit.ts'
import { SHARED_HELP, SHARED_OPTIONS, sharedOptions } from './gateway-options.ts'
import { summaryOf } from './gateway-summary.ts'
import { shortenPauses } from './pauses.ts'
import { lastingSecret } from './secret.ts'
import { takeSignals } from './signals.ts'
import { out, plain, tell, UsageError } from '../ui/index.ts'

export const GATEWAY_HELP = `pi-context-manager gateway [options]

Runs a gateway between coding agents and their providers until you interrupt it.
As an agent's base URL, set the printed address followed by /anthropic, /openai
or /gemini, or by the whole address of another provider. Add the printed MCP
server to the agent, or nothing collapses. Its secret is the same at each start.

  --listen [HOST:]PORT  where to listen (default 127.0.0.1:8686); any host but
                        loopback needs --token
  --token TOKEN         the path of every request must begin with it
  --anthropic URL       the provider behind /anthropic (default
                        https://api.anthropic.com)
  --openai URL          the provider behind /openai (default
                        https://api.openai.com/v1)
  --gemini URL          the provider behind /gemini (default
                        https://generativelanguage.googleapis.com)
${SHARED_HELP}

${exitHelp(undefined, 'it was interrupted')}`

const TEXT = { type: 'string' } as const

/** Its options. */
export const GATEWAY_OPTIONS = { ...SHARED_OPTIONS, listen: TEXT, token: TEXT, anthropic: TEXT, openai: TEXT, gemini: TEXT } as const

/** Runs the command; resolves with the exit code. */
export async function gateway(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: GATEWAY_OPTIONS })
  const { host, port } = addressOf(values.listen ?? '127.0.0.1:8686')
  const upstreams = { ...named('anthropic', values.anthropic), ...named('openai', values.openai), ...named('gemini', values.gemini) }
  shortenPauses()
  const { startGateway } = await import('../gateway/index.ts')
  const { secretPath, ...shared } = sharedOptions(values)
  const running = await startGateway({
    ...shared,
    secret: lastingSecret(secretPath),
    host,
    port,
    upstreams,
    ...(values.token === undefined ? {} : { token: values.token }),
    onWarning: (sentence) => tell(plain(sentence)),
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') throw new UsageError(`${host}:${port} is in use, perhaps by another gateway; name another port with --listen`)
    throw error
  })
  for (const line of introduction(running)) out(line)
  takeSignals()
  await interrupted()
  try {
    for (const line of summaryOf(running.ledger, await mostHeld(running.conversations.all), running.hasFailed)) tell(plain(line))
  } finally {
    // As long as it listens, this process does not end.
    await running.close()
  }
  return 0
}

function introduction({ url, mcpUrl, secret, pageUrl }: Gateway): string[] {
  return [
    `Anthropic   ${url}/anthropic`,
    `OpenAI      ${url}/openai`,
    `Gemini      ${url}/gemini`,
    `others      ${url}/https://HOST/PATH`,
    `MCP server  ${mcpUrl}  with the header  Authorization: Bearer ${secret}`,
    ...(pageUrl === undefined ? [] : [`page        ${pageUrl}  shows what goes through, to you alone`]),
  ]
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
}

function addressOf(text: string): { host: string; port: number } {
  const [, host = '127.0.0.1', port] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65_535) throw new UsageError(`--listen needs a port, or a host and a port such as 127.0.0.1:8686, not "${text}"`)
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

function named(name: 'anthropic' | 'openai' | 'gemini', value: string | undefined): Record<string, string> {
  if (value === '') throw new UsageError(`--${name} needs an address`)
  const base = baseUrlIn(`--${name}`, value)
  return base === undefined ? {} : { [name]: base }
}
