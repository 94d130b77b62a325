/** Finds our tool in a model's list: by its definition, and not by names and texts that look like it. */
import { afterEach, describe, expect, test } from 'vitest'
import { readRequest } from '../../lib/gateway/request.ts'
import { callsOf } from '../../lib/gateway/shape.ts'
import { RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../../lib/projection/recall.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { ask, long, looping } from './support.ts'

afterEach(cleanUp)

const go = [{ role: 'user', content: 'go' }]
const canRecall = (tools: object[], messages: object[] = go, isConnected = false): boolean =>
  readRequest('messages', { tools, messages }, isConnected)!.canRecall
const named = (name: string): object => ({ name, description: name, input_schema: { type: 'object' } })
const chat = (name: string): object => ({ type: 'function', function: { name } })
const spaced = (name: string, tool: string): object => ({ type: 'namespace', name, tools: [{ type: 'function', name: tool }] })

describe('a declared tool', () => {
  test.each([
    named('mcp__context__activate'),
    chat('context_activate'),
    chat('context__activate'),
    chat('context-activate'),
    chat('mcp_context_activate'),
    spaced('mcp__context', 'activate'),
    spaced('mcp__context__', 'activate'),
    spaced('context', 'activate'),
    { name: 'activate', description: RECALL_DESCRIPTION, input_schema: RECALL_PARAMETERS },
    { type: 'function', function: { name: 'activate', description: `context: ${RECALL_DESCRIPTION}`, parameters: RECALL_PARAMETERS } },
    { name: 'activate', description: RECALL_DESCRIPTION.slice(0, 200) },
  ])('is ours: %j', (tool) => {
    expect(canRecall([named('Bash'), tool])).toBe(true)
  })

  test.each([
    { name: 'activate' },
    chat('activate'),
    named('activate'),
    { name: 'activate', description: ' ', input_schema: { type: 'object', properties: {} } },
  ])('that says nothing about itself is ours once a host has asked our server: %j', (tool) => {
    expect([false, true].map((isConnected) => canRecall([named('Bash'), tool], go, isConnected))).toEqual([false, true])
  })

  test.each([
    ...[
      'mcp__browser__tab_activate',
      'conda-activate',
      'my-context-activate',
      'context-tab-activate',
      'context7-activate',
      'license.activate',
      'deactivate',
      'reactivate',
      'Activate',
      'activate_tab',
      'mcp__context7__activate',
      'mcp__my_context__activate',
      'mcp__context__tab_activate',
      'mcp__context__reactivate',
      'context7_activate',
      'my_context_activate',
      'x.activate',
      '-activate',
      '_activate',
      'mcp__context__search',
      'search',
      ' activate',
      'activate\n',
    ].flatMap((name) => [named(name), chat(name)]),
    ...['browser', 'context7', 'mcp__context7', 'my_context', 'mcp__my_context', 'contexts', 'mcp__contextual__', 'Context'].map((name) =>
      spaced(name, 'activate'),
    ),
    spaced('mcp__context', 'tab_activate'),
    { name: 'activate', description: 'Activate a license.', input_schema: { type: 'object', properties: { id: {}, key: {} } } },
    { name: 'activate', description: 'Activate a virtual environment.' },
    { name: 'activate', input_schema: { type: 'object', properties: { name: { type: 'string' } } } },
    { name: 'mcp__x__y', description: RECALL_DESCRIPTION, input_schema: RECALL_PARAMETERS },
    { name: 3 },
    { name: { toString: 'activate' } },
  ])('is another one: %j', (tool) => {
    expect(canRecall([named('Bash'), tool], go, true)).toBe(false)
  })
})

describe('a tool of ours that is loaded later', () => {
  const ours = { ...named('mcp__context__activate'), defer_loading: true }

  test.each([
    named('ToolSearch'),
    { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
    { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
    { type: 'tool_search' },
  ])('can be called where the model can look it up: %j', (loader) => {
    expect(canRecall([loader, ours])).toBe(true)
  })

  test('cannot be called where nothing looks it up', () => {
    expect(canRecall([named('Bash'), ours])).toBe(false)
  })
})

test('a tool that is loaded later counts once a result refers to it', () => {
  const late = { ...named('late'), description: 'x'.repeat(4_000), defer_loading: true }
  const referring = [
    ...go,
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'ToolSearch', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'tool_reference', tool_name: 'late' }] }] },
  ]
  const found = [
    ...go,
    {
      role: 'assistant',
      content: [
        { type: 'server_tool_use', id: 's', name: 'tool_search_tool_regex', input: {} },
        {
          type: 'tool_search_tool_result',
          tool_use_id: 's',
          content: { type: 'tool_search_tool_search_result', tool_references: [{ type: 'tool_reference', tool_name: 'late' }] },
        },
      ],
    },
    ...go,
  ]
  const tokens = [go, referring, found].map((messages) => readRequest('messages', { tools: [named('ToolSearch'), late], messages })!.systemTokens)
  expect(tokens.map((one) => one > 1_000)).toEqual([false, true, true])
})

const NAMES = [
  'mcp__context__activate',
  'mcp__context__',
  'mcp__context',
  'activate',
  RECALL_DESCRIPTION,
  'toolcall_ref id=0123abcd',
  'mcp__context7__resolve-library-id\nmcp__context7__query-docs',
]
const result = (text: string): object => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text }] }] })

describe('a text', () => {
  test.each(NAMES)('of anyone decides nothing without a tool that loads others: %j', (text) => {
    const first = {
      role: 'user',
      content: [
        { type: 'text', text: 'go' },
        { type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>` },
      ],
    }
    const messages = [
      first,
      { role: 'system', content: text },
      { role: 'developer', content: text },
      { role: 'assistant', content: text },
      result(text),
      { role: 'tool', content: text },
    ]
    for (const isConnected of [false, true]) expect(canRecall([named('Bash')], messages, isConnected)).toBe(false)
    expect(readRequest('messages', { system: text, tools: [named('Bash'), { name: 'x', description: text }], messages: go }, true)!.canRecall).toBe(false)
  })

  const listing = 'The following deferred tools are now available via ToolSearch:\nWebFetch\nmcp__context__activate\nmcp__context__search'
  const search = {
    type: 'tool_search',
    description: '# Tool discovery\n\nYou have access to tools from the following sources:\n- context: ours\n- context7\nSome of the tools',
  }
  test.each([
    ['a list in a message', [named('ToolSearch')], [{ role: 'user', content: `<system-reminder>\n${listing}` }, ...go], [], true],
    ['a list in the system prompt', [chat('tool_search')], go, listing, true],
    ['a list of servers', [chat('tool_search')], [{ role: 'developer', content: 'mcp__context, mcp__context7' }, ...go], [], true],
    ['a list of sources', [search], go, [], true],
    ['a list of others', [named('ToolSearch')], [{ role: 'user', content: listing.replaceAll('mcp__context__', 'mcp__context7__') }], [], false],
    ['a list of other sources', [{ ...search, description: search.description.replace('- context:', '- contexts:') }], go, [], false],
    ['a result that shows a list', [named('ToolSearch')], [...go, { role: 'assistant', content: 'x' }, result(listing)], [], false],
    ['a prompt behind an answer', [named('ToolSearch')], [...go, { role: 'assistant', content: 'x' }, { role: 'user', content: listing }], [], false],
  ] as [string, object[], object[], unknown, boolean][])(
    'of tools that can be loaded counts once the host has asked our server: %s',
    (_, tools, messages, system, wanted) => {
      const read = (isConnected: boolean): boolean => readRequest('messages', { system, tools, messages }, isConnected)!.canRecall
      expect([read(false), read(true)]).toEqual([false, wanted])
    },
  )
})

test('a tool that the conversation has loaded counts', () => {
  const output = { type: 'tool_search_output', call_id: 'c', tools: [spaced('mcp__context', 'activate')] }
  const read = (input: object[]): boolean => readRequest('responses', { tools: [{ type: 'tool_search' }], input })!.canRecall
  expect([read([...go]), read([...go, output]), read([...go, { ...output, tools: [spaced('mcp__context7', 'activate')] }])]).toEqual([false, true, false])
})

test.each([
  ['mcp__context__activate', '', false, 'activate'],
  ['context_activate', '', false, 'activate'],
  ['activate', 'mcp__context', false, 'activate'],
  ['activate', '', true, 'activate'],
  ['activate', '', false, 'agent.activate'],
  ['activate', 'mcp__browser', true, 'mcp__browser.activate'],
  ['mcp__browser__tab_activate', '', true, 'mcp__browser__tab_activate'],
  ['conda-activate', '', true, 'conda-activate'],
  ['license.activate', '', true, 'license.activate'],
  ['pin', '', true, 'agent.pin'],
  ['deactivate', '', true, 'agent.deactivate'],
])('a call of %s in the namespace %j, where a plain one is ours: %s, is %s', (name, namespace, isPlain, wanted) => {
  expect(callsOf([{ name, args: { id: 'x' }, id: 'call_1', namespace }], isPlain)[0]?.tool).toBe(wanted)
})

const SIMILAR = ['mcp__browser__tab_activate', 'conda-activate', 'license.activate', 'mcp__context7__resolve-library-id']
test('through the gateway nothing collapses beside tools and texts that look like ours, and all of it is recorded', async () => {
  const { server, gateway, loop } = await looping()
  loop.tools = [
    ...loop.tools.slice(0, 3),
    ...SIMILAR.map(named),
    { name: 'activate', description: 'Activates a license.', input_schema: { type: 'object', properties: { id: {} } } },
  ]
  const names = 'mcp__context__activate mcp__context__ toolcall_ref id=12345678'
  loop.messages.push({
    role: 'user',
    content: [
      { type: 'text', text: `<system-reminder>\ndeferred: mcp__context7__query-docs, ${names}</system-reminder>` },
      { type: 'text', text: names },
    ],
  })
  const wanted: string[] = []
  for (let n = 0; n < 20; n += 1) {
    const text = `${names}\n${long(`n${n}`)}`
    wanted.push(text)
    await loop.call([...SIMILAR, 'activate', 'Bash'][n % 6]!, n % 6 === 4 ? { id: `${n}` } : { command: `${names} ${n}` }, text)
  }
  expect(server.requests.at(-1)!.messages.flatMap(({ results }) => results.map(({ text }) => text))).toEqual(wanted)
  const { manager } = await gateway.conversations.all[0]!.session()
  expect((await manager.sessionSets()).sessionIndex.length).toBe(20)
})

test('a host whose model loads our tool later: outputs collapse once it has asked our server for its tools', async () => {
  const { server, gateway, loop } = await looping()
  loop.tools = [...loop.tools.slice(0, 3), named('ToolSearch')]
  loop.messages.push({
    role: 'user',
    content: [
      { type: 'text', text: '<system-reminder>\nThe following deferred tools are now available via ToolSearch:\nmcp__context__activate\n</system-reminder>' },
    ],
  })
  const sent = (): string => server.requests.at(-1)!.raw.toString()
  for (let n = 0; n < 12; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  expect(sent()).not.toContain('toolcall_ref')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  await ask(gateway.mcpUrl, { headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }, body })
  for (let n = 12; n < 24; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  expect(sent()).toContain('toolcall_ref')
})
