/** A gateway before a server, and a client that is a loop around a model. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGateway } from '../../lib/gateway/gateway.ts'
import type { BilledCall } from '../../lib/gateway/bills.ts'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import type { GatewayOptions } from '../../lib/gateway/options.ts'
import type { StoreOptions } from '../../index.js'
import { folder } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import { listening } from '../../rig/listening.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'

/** A gateway whose upstreams are a server on this machine. */
export async function gatewayTo(
  server: string,
  options: Partial<GatewayOptions> & { store?: StoreOptions } = {},
): Promise<{ gateway: Gateway; warnings: string[] }> {
  const warnings: string[] = []
  const { store = { kind: 'memory' }, ...rest } = options
  const gateway = await startGateway({
    open: { store, stay: { weight: 0.3 } },
    upstreams: { anthropic: server, openai: `${server}/v1`, gemini: server },
    onWarning: (sentence) => warnings.push(sentence),
    env: {},
    // The form of a request must not depend on how busy this machine is. Tests of the limit set their own.
    limitMs: 60_000,
    ...rest,
  })
  onCleanUp(() => gateway.close())
  return { gateway, warnings }
}

/** A store and a folder of forms that a second gateway can take over. */
export function lasting(): { store: StoreOptions; formsPath: string } {
  const path = folder()
  return { store: { kind: 'sqlite', path: join(path, 'context.db') }, formsPath: join(path, 'forms') }
}

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

/** A gateway in its own process. */
export async function startProcess(home: string, server: string, env: Record<string, string> = {}): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(
    process.execPath,
    [START, 'gateway', '--listen', '0', '--store', join(home, 'context.db'), '--anthropic', server, '--openai', `${server}/v1`],
    {
      env: { PATH: process.env['PATH'], HOME: home, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  onCleanUp(() => void child.kill('SIGKILL'))
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
      const found = /http:\/\/127\.0\.0\.1:\d+(?=\/anthropic)/.exec(said)?.[0]
      if (found !== undefined) resolve(`${found}/anthropic`)
    })
    child.once('exit', () => reject(new Error(`the gateway has ended: ${said}`)))
  })
  return { child, url }
}

/** A request as a server got it. */
export interface Seen {
  request: IncomingMessage
  body: Buffer
}

/** A server that records what it gets and answers as told. */
export async function upstream(answer: (seen: Seen, response: ServerResponse) => void): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const one = { request, body: Buffer.concat(chunks) }
      seen.push(one)
      answer(one, response)
    })
  })
  return { url: await listening(server), seen }
}

/** The header of a body in JSON. */
export const JSON_TYPE = { 'content-type': 'application/json' }

/** An answer as it came. */
export interface Got {
  status: number
  headers: IncomingHttpHeaders
  raw: string[]
  text: string
  /** The connection broke off before the end. */
  isBroken: boolean
}

/** One request over a separate connection, with nothing added to it. */
export function ask(url: string, options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {}): Promise<Got> {
  const { method = 'POST', headers = {}, body } = options
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      const done = (isBroken: boolean): void =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          raw: response.rawHeaders,
          text: Buffer.concat(chunks).toString('utf8'),
          isBroken,
        })
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', () => done(true))
      response.on('end', () => done(!response.complete))
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** Calls a tool of the gateway's MCP server. Returns the first text of its answer. */
export async function callTool(gateway: Gateway, name: string, args: object, meta: object = {}): Promise<string> {
  return (await textsOfTool(gateway, name, args, meta))[0]!
}

/** The texts of an answer of a tool. */
export async function textsOfTool(gateway: Gateway, name: string, args: object, meta: object = {}): Promise<string[]> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } })
  const { text } = await ask(gateway.mcpUrl, { headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }, body })
  return (JSON.parse(text) as { result: { content: { text: string }[] } }).result.content.map((one) => one.text)
}

/** The IDs of the references in a request. */
export function referencesIn({ raw }: Pick<ModelRequest, 'raw'>): string[] {
  return [...raw.toString().matchAll(/toolcall_ref id=([0-9a-f]+)/g)].map(([, id]) => id!)
}

/** The texts that the references in a request bring back. */
export function broughtBack(gateway: Gateway, request: Pick<ModelRequest, 'raw'>): Promise<string[]> {
  return Promise.all(referencesIn(request).map((id) => callTool(gateway, 'activate', { id })))
}

/** The declarations of the tools that the loop below has, ours among them. */
const ANTHROPIC_TOOLS = ['Bash', 'Read', 'Write', 'mcp__context__activate'].map((name) => ({ name, description: name, input_schema: { type: 'object' } }))

/** A loop around Anthropic's Messages, as Claude Code runs one: the host's own messages, its headers and its markers. */
export class AnthropicLoop {
  readonly messages: any[] = []
  url: string
  readonly session: string
  agent: string | undefined
  tools: object[] = ANTHROPIC_TOOLS
  calls = 0
  model = 'claude-sonnet-4-5'
  /** True if its model thinks before a call. */
  thinks = false
  /** Fields that its bodies have besides. */
  more: object = {}
  /** The coding of a body on the wire. */
  encode: (body: Buffer) => { body: Buffer; headers: Record<string, string> } = (body) => ({ body, headers: {} })

  constructor(gateway: { url: string }, session = 'session-1') {
    this.url = gateway.url
    this.session = session
  }

  /** Sends the conversation. */
  async send(): Promise<Got> {
    const messages = this.messages.map((message, at) => (at < this.messages.length - 1 ? message : marked(message)))
    const plain = {
      model: this.model,
      max_tokens: 1000,
      stream: true,
      system: [{ type: 'text', text: 'You are a test.' }],
      tools: this.tools,
      ...this.more,
      messages,
    }
    const agent = this.agent === undefined ? {} : { 'x-claude-code-agent-id': this.agent }
    const { body, headers } = this.encode(Buffer.from(JSON.stringify(plain)))
    return ask(`${this.url}/v1/messages?beta=true`, {
      headers: {
        'content-type': 'application/json',
        'user-agent': 'claude-cli/2.1.331',
        'x-api-key': 'sk-secret',
        'x-claude-code-session-id': this.session,
        ...agent,
        ...headers,
      },
      body,
    })
  }

  /** A prompt of the user, and the model's answer to it. */
  async prompt(text: string): Promise<void> {
    this.messages.push({ role: 'user', content: [{ type: 'text', text }] })
    await this.send()
    this.messages.push({ role: 'assistant', content: [{ type: 'text', text: `answer to ${text}` }] })
  }

  /** A call of a tool, its output, and the request with it. */
  async call(name: string, input: object, output: string): Promise<string> {
    const id = `toolu_${this.session}_${(this.calls += 1)}`
    if (this.messages.at(-1)?.role !== 'user') this.messages.push({ role: 'user', content: [{ type: 'text', text: `continue ${this.calls}` }] })
    this.messages.push({
      role: 'assistant',
      content: [...(this.thinks ? [{ type: 'thinking', thinking: `about ${id}`, signature: 's' }] : []), { type: 'tool_use', id, name, input }],
    })
    this.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] })
    await this.send()
    return id
  }
}

/** A gateway before a model that answers `ok`, and a loop through it. */
export async function looping(
  options: Parameters<typeof gatewayTo>[1] = {},
): Promise<{ server: ModelServer; gateway: Gateway; warnings: string[]; loop: AnthropicLoop }> {
  const server = await startModelServer(() => 'ok')
  const { gateway, warnings } = await gatewayTo(server.url, options)
  return { server, gateway, warnings, loop: new AnthropicLoop(gateway) }
}

function marked(message: any): any {
  const blocks = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content
  return { ...message, content: [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control: { type: 'ephemeral' } }] }
}

/** The calls in a file of bills, once its gateway is closed. */
export function billedIn(path: string): BilledCall[] {
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as BilledCall)
}

/** A text as agents show the lines of a file: each behind its number. */
export function numbered(text: string): string {
  return text
    .split('\n')
    .map((line, n) => `${n + 1}\t${line}`)
    .join('\n')
}

/** An output that is worth collapsing. Line n of it begins with its name. */
export function long(name: string, lines = 120): string {
  return Array.from({ length: lines }, (_, n) => `${name} line ${n} of an output that is long enough to matter`).join('\n')
}

/** A text that Gemini CLI puts in place of an output of its shell. */
export function maskOf(text: string): string {
  const lines = text.split('\n')
  const preview = `${lines.slice(0, 10).join('\n')}\n\n... [${lines.length - 20} lines omitted] ...\n\n${lines.slice(-10).join('\n')}`
  return `<tool_output_masked>\nOutput: ${preview}\n\nOutput too large. Full output available at: /home/u/.gemini/tmp/p/tool-outputs/a.txt\n</tool_output_masked>`
}
