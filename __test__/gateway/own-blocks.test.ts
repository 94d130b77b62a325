/**
 * Blocks of the provider's own through the gateway: tools that are loaded later, calls that the provider runs, images, documents and
 * citations. The provider refuses what the API refuses; a session is long enough to roll.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { PlainLoop } from '../../rig/plain-loop.ts'
import { call } from '../../rig/reply.ts'
import type { Part, Reply } from '../../rig/reply.ts'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { folder } from '../core/setup.ts'
import { gatewayTo, long, numbered } from './support.ts'
import { checkSession, model, raw, words } from './turns.ts'
import type { Step } from './turns.ts'

afterEach(cleanUp)

const SCHEMA = { type: 'object' }
const TOOLS = [
  { type: 'web_search_20250305', name: 'web_search' },
  { type: 'code_execution_20250825', name: 'code_execution' },
  { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  ...['Bash', 'Read', 'ToolSearch', 'mcp__context__activate'].map((name) => ({ name, description: name, input_schema: SCHEMA })),
  ...['late_a', 'late_b'].map((name) => ({ name, description: long(name, 20), input_schema: SCHEMA, defer_loading: true })),
]

const text = (value: string): Part => ({ text: value })
const search = (n: number): Part => raw({ type: 'server_tool_use', id: `srvtoolu_${n}`, name: 'web_search', input: { query: `q${n}` } })
const searched = (n: number): Part =>
  raw({
    type: 'web_search_tool_result',
    tool_use_id: `srvtoolu_${n}`,
    content: [
      {
        type: 'web_search_result',
        url: `https://site.example/${n}`,
        title: `t${n}`,
        encrypted_content: Buffer.from(words(`page ${n}`, 60)).toString('base64'),
        page_age: null,
      },
    ],
  })
const cited = (n: number, count = 40): Part =>
  raw({
    type: 'text',
    text: words(`cited ${n}`, count),
    citations: [{ type: 'web_search_result_location', url: `https://site.example/${n}`, title: `t${n}`, encrypted_index: `index${n}`, cited_text: 'says' }],
  })
const fromDocument = (n: number, at: number): Part =>
  raw({
    type: 'text',
    text: words(`of document ${n}`, 40),
    citations: [{ type: 'char_location', cited_text: 'says', document_index: at, document_title: `d${n}`, start_char_index: 0, end_char_index: 4 }],
  })

/** Turns of the model by name. Each ends with calls of the shell that are worth collapsing. */
const TURNS: Record<string, Step[]> = {
  'a web search': [(n) => [text('I search.'), search(n), searched(n), cited(n), call('Bash', { command: `cat web${n}` })]],
  'a web search that waits for a call of the client': [
    (n) => [search(n), call('Bash', { command: `cat mixed${n}` })],
    (n) => [searched(n), cited(n), call('Bash', { command: `cat then${n}` })],
  ],
  'a tool that the client has looked up': [
    (n) => [call('ToolSearch', { query: 'late_a' }, `toolu_search_${n}`)],
    (n) => [text(words(`plan ${n}`, 20)), call('late_a', { n })],
  ],
  'a tool that the provider has looked up': [
    (n) => [
      raw({ type: 'server_tool_use', id: `srvtoolu_${n}`, name: 'tool_search_tool_regex', input: { query: 'late' } }),
      raw({
        type: 'tool_search_tool_result',
        tool_use_id: `srvtoolu_${n}`,
        content: { type: 'tool_search_tool_search_result', tool_references: [{ type: 'tool_reference', tool_name: 'late_b' }] },
      }),
      call('late_b', { n }),
    ],
  ],
  'code that the provider has run': [
    (n) => [
      raw({ type: 'server_tool_use', id: `srvtoolu_${n}`, name: 'code_execution', input: { code: words('print', 30) } }),
      raw({
        type: 'code_execution_tool_result',
        tool_use_id: `srvtoolu_${n}`,
        content: { type: 'code_execution_result', stdout: words(`out ${n}`, 60), stderr: '', return_code: 0, content: [] },
      }),
      text(words(`run ${n}`, 20)),
      call('Bash', { command: `cat run${n}` }),
    ],
  ],
  'an image and a document from a tool': [
    (n) => [call('Read', { file_path: `/nowhere/picture${n}.png` }), call('Read', { file_path: `/nowhere/paper${n}.pdf` })],
    (n) => [call('Bash', { command: `cat read${n}` })],
  ],
  'search results from a tool': [(n) => [call('Bash', { command: `look up ${n}` })], (n) => [call('Bash', { command: `cat looked${n}` })]],
  'a document from the user': [(n) => [fromDocument(n, 0), call('Bash', { command: `cat doc${n}` })]],
}

const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: Buffer.from('png'.repeat(4000)).toString('base64') } }
const PAPER = {
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: Buffer.from('pdf'.repeat(4000)).toString('base64') },
  citations: { enabled: true },
}
const document = (n: number) => ({
  type: 'document',
  source: { type: 'text', media_type: 'text/plain', data: words(`document ${n}`, 60) },
  title: `d${n}`,
  citations: { enabled: true },
})

/** The answers of the client's tools. */
function run(name: string, args: any): string | object[] {
  if (name === 'ToolSearch') return [{ type: 'tool_reference', tool_name: args.query }]
  if (name.startsWith('late')) return long(`${name} ${args.n}`)
  if (args.file_path?.endsWith('.png')) return [{ type: 'text', text: words('a picture', 40) }, IMAGE]
  if (args.file_path?.endsWith('.pdf')) return [PAPER]
  if (args.command?.startsWith('look up'))
    return [
      { type: 'text', text: words(args.command, 40) },
      {
        type: 'search_result',
        source: 'https://wiki.example',
        title: args.command,
        content: [{ type: 'text', text: words(args.command, 60) }],
        citations: { enabled: true },
      },
    ]
  return long(args.command)
}

/** Content that no tool of ours can bring back. */
function isOwn(block: any): boolean {
  return !['text', 'tool_use', 'tool_result', 'thinking'].includes(block.type) || (block.type === 'text' && block.citations !== undefined)
}

/** The blocks of messages that are the provider's own or no text, in their order. */
function ownBlocks(messages: readonly any[]): string[] {
  const flat = messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .flatMap((block: any) => (block.type === 'tool_result' && Array.isArray(block.content) ? block.content : [block]))
  return flat.filter(isOwn).map(({ cache_control: _, ...block }: any) => JSON.stringify(block))
}

async function started(answer: (request: ModelRequest) => Reply): Promise<{ server: ModelServer; gateway: Gateway; loop: PlainLoop }> {
  const server = await startModelServer(answer)
  const { gateway } = await gatewayTo(server.url)
  const loop = new PlainLoop({
    server: gateway,
    api: 'anthropic-messages',
    model: 'claude-sonnet-4-5',
    run,
    body: { tools: TOOLS },
    headers: { 'user-agent': 'claude-cli/2.1.331', 'x-claude-code-session-id': 'session-1' },
  })
  return { server, gateway, loop }
}

describe('in Anthropic’s format', () => {
  test.each([...Object.keys(TURNS), 'all of them'])('%s: nothing of it leaves, nothing is refused', async (kind) => {
    const { server, gateway, loop } = await started(
      model(
        TURNS,
        (name) => call('Bash', { command: `cat ${name}` }),
        ({ role }) => role === 'tool',
      ),
    )
    const kinds = kind === 'all of them' ? Object.keys(TURNS) : [kind]
    for (let n = 0; n < 16; n += 1) {
      const now = kinds[n % kinds.length]!
      const extra = now === 'a document from the user' ? [document(n), IMAGE] : []
      loop.messages.push({ role: 'user', content: [...extra, { type: 'text', text: `turn ${n}: ${now}` }] })
      await loop.resume()
    }
    checkSession(server, gateway, loop.messages, 0.7)
    expect(ownBlocks(server.requests.at(-1)!.body.messages)).toEqual(ownBlocks(loop.messages))
  })

  test('a notice waits until the provider has run its own call', async () => {
    const path = join(folder(), 'a.ts')
    mkdirSync(join(path, '..'), { recursive: true })
    const lines = (name: string): string => Array.from({ length: 40 }, (_, n) => `const ${name}_${n} = ${n}`).join('\n')
    writeFileSync(path, lines('old'))
    const parts: Part[][] = [
      [call('Read', { file_path: path })],
      [search(1), call('Bash', { command: 'cat mixed' })],
      [searched(1), cited(1, 2), call('Bash', { command: 'cat then' })],
      [text('done')],
    ]
    const { server, loop } = await started((request) => ({ parts: parts[request.n]! }))
    loop.options.run = (name) => {
      if (name === 'Read') return numbered(lines('old'))
      writeFileSync(path, lines('new'))
      return 'changed'
    }
    await loop.prompt('turn')
    server.check()
    expect(server.requests.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(server.requests[2]!.raw.toString()).not.toContain('stale id=')
    expect(server.requests[3]!.raw.toString()).toContain('stale id=')
  })

  test('a turn that the provider has paused continues without a notice behind it', async () => {
    const path = join(folder(), 'a.ts')
    writeFileSync(path, 'const a = 1\n'.repeat(40))
    const parts: Part[][] = [[call('Read', { file_path: path })], [search(1)], [searched(1), cited(1, 2)]]
    const { server, loop } = await started((request) => ({ parts: parts[request.n]! }))
    loop.options.run = () => numbered('const a = 1\n'.repeat(40))
    await loop.prompt('turn')
    writeFileSync(path, 'const b = 1\n'.repeat(40))
    await loop.resume()
    server.check()
    expect(server.requests.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(server.requests[2]!.body.messages.at(-1).role).toBe('assistant')
  })
})
