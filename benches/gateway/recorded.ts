/**
 * Recorded sessions of Claude Code, sent again through a real gateway to a server on this machine that meters them by
 * replay's rules: what their prompts cost, beside replay's own figure; and with a new gateway for every turn of the user, on a
 * model that binds its reasoning, beside one gateway. CONTEXT_SESSIONS names a folder of them; by default the repository's own.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGateway } from '../../lib/gateway/index.ts'
import { optionsOf } from '../../lib/cli/index.ts'
import { isCall, knownPrices, modelOf, openRecording, sessionFiles } from '../../lib/recordings/index.ts'
import type { ContentBlock, Message, Recording } from '../../lib/recordings/index.ts'
import { replaySession, survey, Tally } from '../../lib/replay/index.ts'
import type { Survey } from '../../lib/replay/index.ts'
import { median, print } from '../figure.ts'
import { blocksIn } from './metered.ts'

/** Our tools, as Claude Code declares them. */
const TOOLS = ['bash', 'mcp__context__activate'].map((name) => ({ name, input_schema: { type: 'object' } }))

/** A model that binds its reasoning. */
const BOUND = 'claude-opus-5-5'

let body: { messages: { role: string; content: unknown }[] } = { messages: [] }
const server = createServer((incoming, response) => {
  const chunks: Buffer[] = []
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
  incoming.on('end', () => {
    body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    response.end('{}')
  })
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const REPLAY = { ...optionsOf({ cache: 'anthropic' } as Parameters<typeof optionsOf>[0]), policies: ['append', 'pi-context-manager'] as const, onlyCosts: true }
let [ours, beside, plain, anew, bound, sessions] = [0, 0, 0, 0, 0, 0]
const ratios: number[] = []
const folder = process.env['CONTEXT_SESSIONS'] ?? fileURLToPath(new URL('../../fixtures/sessions', import.meta.url))
for await (const file of sessionFiles(folder)) {
  const recording = await openRecording(file).catch(() => undefined)
  if (recording?.origin.format !== 'claude-code') continue
  const found = await survey(recording, () => {})
  if (found.calls === 0) continue
  const { policies } = await replaySession(recording, found, REPLAY)
  const { append, 'pi-context-manager': own } = policies
  if (append === undefined || own === undefined) continue
  // The recording does not have the text that replay lets the agent read again.
  const replayed = own.cost - own.rereadCost
  const cost = await throughGateway(recording, found)
  bound += await throughGateway(recording, found, { model: BOUND })
  anew += await throughGateway(recording, found, { model: BOUND, isAnew: true })
  ours += cost
  beside += replayed
  plain += append.cost
  sessions += 1
  ratios.push(cost / replayed)
}
server.close()
const note = `by session ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}, median ${median(ratios).toFixed(3)}; with nothing removed $${plain.toFixed(2)}`
print({
  figure: 'gateway-cost',
  what: `prompts of ${sessions} recorded sessions of Claude Code through the gateway`,
  ours,
  peer: 'replay',
  beside,
  unit: '$',
  good: 1.02,
  note,
})
print({
  figure: 'gateway-cost',
  what: `the same with a new gateway for every turn, on ${BOUND}`,
  ours: anew,
  peer: 'one gateway',
  beside: bound,
  unit: '$',
  good: 1.02,
})

/**
 * Returns the cost of a session's prompts through a separate gateway, on the recorded models or on one. `isAnew`: a new gateway for
 * every turn.
 */
async function throughGateway(
  recording: Recording,
  { unitsPerToken, systemTokens, prices }: Survey,
  options: { model?: string; isAnew?: boolean } = {},
): Promise<number> {
  let at = 0
  const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
  const place = {
    open: { store: { kind: 'sqlite', path: join(root, 'context.db'), durability: 'process' }, watch: false, filesystemId: 'bench' },
    formsPath: join(root, 'forms'),
  } as const
  const start = () => startGateway({ ...place, upstreams: { anthropic: url }, cwd: '/nowhere', env: {}, now: () => at, limitMs: 60_000 })
  let gateway = await start()
  const { id: sessionId, cwd } = recording.origin
  const setting = { sessionId, cwd, unitsPerToken, systemTokens, window: REPLAY.window, cache: REPLAY.cache, summaries: [], manager: REPLAY.manager }
  const tally = new Tally('pi-context-manager', setting)
  const messages: { role: string; content: object[] }[] = []
  const system = 'x'.repeat(Math.round(systemTokens * 4))
  for await (const step of recording.steps(() => {})) {
    if (step.kind !== 'message') continue
    const { message } = step.entry
    if (isCall(message) && messages.at(-1)?.role === 'user') {
      at = step.entry.at
      const model = options.model ?? modelOf(message)
      if (options.isAnew === true && messages.length > 1 && beginsTurn(messages)) {
        await gateway.close()
        gateway = await start()
      }
      const sent = JSON.stringify({ model: options.model ?? message.model, max_tokens: 1000, stream: true, system, tools: TOOLS, messages })
      const response = await fetch(`${gateway.url}/v1/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-claude-code-session-id': sessionId },
        body: sent,
      })
      await response.text()
      const known = prices.get(model) ?? knownPrices(model)
      if (known === undefined) throw new Error(`${model} has no known price`)
      tally.send({ blocks: blocksIn(body.messages, (systemTokens + REPLAY.manager.overheadTokens) * unitsPerToken), fixed: 1 }, { at, model, prices: known })
    }
    add(messages, message)
  }
  await gateway.close()
  rmSync(root, { recursive: true, force: true })
  return tally.figures().cost
}

/** True if a user's turn begins with the last message. */
function beginsTurn(messages: readonly { content: object[] }[]): boolean {
  const types = (messages.at(-1)?.content ?? []).map((block) => (block as ContentBlock).type as string)
  return types.includes('text') && !types.includes('tool_result')
}

/** Adds a message in Anthropic's format. The content after a message of the same role goes into that message. */
function add(messages: { role: string; content: object[] }[], message: Message): void {
  const { role, toolCallId, isError } = message
  const blocks = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : (message.content ?? [])
  const own = blocks.flatMap((block) => ownBlock(block))
  const content =
    role === 'toolResult' ? [{ type: 'tool_result', tool_use_id: toolCallId, content: own, ...(isError === true ? { is_error: true } : {}) }] : own
  if (content.length === 0 || !['user', 'assistant', 'toolResult'].includes(role)) return
  const as = role === 'assistant' ? 'assistant' : 'user'
  const last = messages.at(-1)
  if (last?.role === as) last.content.push(...content)
  else messages.push({ role: as, content: [...content] })
}

function ownBlock(block: ContentBlock): object[] {
  const { type, text = '', thinking = '', id, name, arguments: input = {}, data = '', thinkingSignature } = block
  if (type === 'text') return text === '' ? [] : [{ type, text }]
  if (type === 'thinking') return [{ type, thinking, signature: thinkingSignature ?? 'c2ln' }]
  if (type === 'toolCall') return [{ type: 'tool_use', id, name, input }]
  return type === 'image' ? [{ type, source: { type: 'base64', media_type: 'image/png', data } }] : []
}
