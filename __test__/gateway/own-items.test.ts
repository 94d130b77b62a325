/** Items and parts of the provider's own through the gateway, in OpenAI's and Gemini's formats. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { PlainLoop } from '../../rig/plain-loop.ts'
import { call } from '../../rig/reply.ts'
import type { Part } from '../../rig/reply.ts'
import { ask, gatewayTo, JSON_TYPE, long } from './support.ts'
import { checkSession, model, raw, words } from './turns.ts'
import type { Step } from './turns.ts'

afterEach(cleanUp)

const TURNS = 16

const shell = (name: string): Part => call('shell', { command: `cat ${name}` })

const citedMessage = (n: number): Part =>
  raw({
    id: `msg_cited_${n}`,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [
      {
        type: 'output_text',
        text: words(`cited ${n}`, 40),
        annotations: [{ type: 'url_citation', url: 'https://site.example', title: 't', start_index: 0, end_index: 20 }],
      },
    ],
  })

/** Turns in OpenAI's responses format. */
const ITEMS: Record<string, Step[]> = {
  'a web search': [
    (n) => [
      { thinking: `hm ${n}` },
      raw({ id: `ws_${n}`, type: 'web_search_call', status: 'completed', action: { type: 'search', query: words(`q ${n}`, 20) } }),
      citedMessage(n),
    ],
    (n) => [shell(`web${n}`)],
  ],
  'code that OpenAI has run': [
    (n) => [
      { thinking: `hm ${n}` },
      raw({
        id: `ci_${n}`,
        type: 'code_interpreter_call',
        status: 'completed',
        container_id: 'cntr_1',
        code: words('print', 20),
        outputs: [{ type: 'logs', logs: words(`out ${n}`, 60) }],
      }),
      shell(`run${n}`),
    ],
  ],
  'a tool of a remote server': [
    (n) => [
      raw({ id: `mcp_${n}`, type: 'mcp_call', server_label: 's', name: 'ask', arguments: '{}', output: words(`answer ${n}`, 60), error: null }),
      shell(`mcp${n}`),
    ],
  ],
  'an image that OpenAI has made': [
    (n) => [
      raw({ id: `ig_${n}`, type: 'image_generation_call', status: 'completed', result: Buffer.from(`png ${n} `.repeat(500)).toString('base64') }),
      shell(`image${n}`),
    ],
  ],
  'tools that OpenAI has looked up': [
    (n) => [
      raw({ id: `tsc_${n}`, type: 'tool_search_call', execution: 'server', call_id: null, status: 'completed', arguments: { paths: ['late'] } }),
      raw({
        id: `tso_${n}`,
        type: 'tool_search_output',
        execution: 'server',
        call_id: null,
        status: 'completed',
        tools: [{ type: 'function', name: 'late', description: words('late', 20), parameters: { type: 'object' } }],
      }),
      shell(`late${n}`),
    ],
  ],
  'a shell of the client with a call in another form': [
    (n) => [
      { thinking: `hm ${n}` },
      raw({ id: `sh_${n}`, type: 'shell_call', call_id: `call_sh_${n}`, status: 'completed', action: { commands: [words(`ls ${n}`, 20)] } }),
    ],
    (n) => [shell(`after${n}`)],
  ],
}

test.each([...Object.keys(ITEMS), 'all of them'])('in OpenAI’s responses: %s', async (kind) => {
  const server = await startModelServer(
    model(ITEMS, shell, ({ role, json }) => role === 'tool' || json.includes('"shell_call_output"') || json.includes('continue')),
  )
  const { gateway } = await gatewayTo(server.url)
  const tools = ['shell', 'mcp__context__activate'].map((name) => ({ type: 'function', name, parameters: { type: 'object' } }))
  const loop = new PlainLoop({
    server: { url: gateway.url.replace(/\/anthropic$/, '/openai') },
    api: 'openai-responses',
    model: 'gpt-5.1',
    run: (_, args) => long(args.command),
    body: { tools },
    headers: { 'user-agent': 'codex_exec/0.169.0', 'thread-id': 'thread-1' },
  })
  const kinds = kind === 'all of them' ? Object.keys(ITEMS) : [kind]
  for (let n = 0; n < TURNS; n += 1) {
    loop.messages.push({
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_image', image_url: `data:image/png;base64,${Buffer.from('png'.repeat(900)).toString('base64')}` },
        { type: 'input_text', text: `turn ${n}: ${kinds[n % kinds.length]}` },
      ],
    })
    await loop.resume()
    const { type, call_id: id } = loop.messages.at(-1)
    if (type === 'shell_call')
      loop.messages.push({
        type: 'shell_call_output',
        call_id: id,
        output: [{ stdout: words('listed', 40), stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
      })
    else if (loop.messages.at(-1).id === `msg_cited_${n}`)
      loop.messages.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'continue' }] })
    else continue
    await loop.resume()
  }
  checkSession(server, gateway, loop.messages, 0.75)
  const own = (items: readonly any[]): string[] =>
    items.flatMap((item) =>
      item.id?.startsWith('msg_cited') || !['message', 'function_call', 'function_call_output', 'reasoning'].includes(item.type)
        ? [JSON.stringify(item)]
        : item.role === 'user' && Array.isArray(item.content)
          ? item.content.filter(({ type }: any) => type !== 'input_text').map((one: object) => JSON.stringify(one))
          : [],
    )
  expect(own(server.requests.at(-1)!.body.input)).toEqual(own(loop.messages))
})

/** Turns in Gemini's format. */
const PARTS: Record<string, Step[]> = {
  'code that Google has run': [
    (n) => [
      raw({ executableCode: { language: 'PYTHON', code: words(`print ${n}`, 20) } }),
      raw({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: words(`out ${n}`, 60) } }),
      shell(`run${n}`),
    ],
  ],
  'a search that Google has run': [
    (n) => [
      raw({ toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: `g${n}`, args: { queries: [`q${n}`] } }, thoughtSignature: `s${n}` }),
      raw({
        toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', id: `g${n}`, response: { search_suggestions: words(`found ${n}`, 60) } },
        thoughtSignature: `r${n}`,
      }),
      shell(`search${n}`),
    ],
  ],
  'a result with an image': [(n) => [n % 4 === 0 ? call('picture', { n }) : shell(`first${n}`)]],
}

test.each([...Object.keys(PARTS), 'all of them'])('in Gemini’s contents: %s', async (kind) => {
  const server = await startModelServer(model(PARTS, shell, ({ role }) => role === 'tool'))
  const { gateway } = await gatewayTo(server.url)
  const url = `${gateway.url.replace(/\/anthropic$/, '/gemini')}/v1beta/models/gemini-3.1-pro:generateContent`
  const tools = [
    { codeExecution: {} },
    { functionDeclarations: ['shell', 'picture', 'mcp_context_activate'].map((name) => ({ name, parametersJsonSchema: { type: 'object' } })) },
  ]
  const contents: any[] = []
  const image = { inlineData: { mimeType: 'image/png', data: Buffer.from('png'.repeat(900)).toString('base64') } }
  const kinds = kind === 'all of them' ? Object.keys(PARTS) : [kind]
  for (let n = 0; n < TURNS; n += 1) {
    contents.push({
      role: 'user',
      parts: [{ fileData: { fileUri: `files/${n}`, mimeType: 'application/pdf' } }, { text: `turn ${n}: ${kinds[n % kinds.length]}` }],
    })
    for (;;) {
      const { status, text } = await ask(url, {
        headers: { ...JSON_TYPE, 'user-agent': 'GeminiCLI/0.61.0/gemini-3.1-pro (linux; x64)' },
        body: JSON.stringify({ contents, tools }),
      })
      expect([status, text]).toEqual([200, expect.any(String)])
      const { parts } = JSON.parse(text).candidates[0].content
      contents.push({ role: 'model', parts })
      const calls = parts.flatMap(({ functionCall: one }: any) => (one === undefined ? [] : [one]))
      if (calls.length === 0) break
      contents.push({
        role: 'user',
        parts: calls.map(({ id, name, args }: any) => ({
          functionResponse: { id, name, response: { output: long(args.command ?? `picture ${args.n}`) }, ...(name === 'picture' ? { parts: [image] } : {}) },
        })),
      })
    }
  }
  checkSession(server, gateway, contents, 0.75)
  const own = (all: readonly any[]): string[] =>
    all
      .flatMap(({ parts }) =>
        parts.flatMap((part: any) =>
          part.functionResponse !== undefined ? (part.functionResponse.parts ?? []) : part.text === undefined && part.functionCall === undefined ? [part] : [],
        ),
      )
      .map((part) => JSON.stringify(part))
  expect(own(server.requests.at(-1)!.body.contents)).toEqual(own(contents))
})
