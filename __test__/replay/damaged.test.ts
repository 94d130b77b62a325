/** One value of a session is not what the agent writes: everything else is still read. */
import { afterEach, describe, expect, test } from 'vitest'
import { NotReplayable, openRecording } from '../../lib/recordings/index.ts'
import { replaySession } from '../../lib/replay/run.ts'
import { survey } from '../../lib/replay/survey.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { entriesOf, options, stepsOf, temporaryFile } from './support.ts'

afterEach(cleanUp)

const at = (second: number): string => new Date(Date.UTC(2026, 2, 1, 10, 0, second)).toISOString()
const IMAGE = 'iVBORw0KGgo='

const PI = [
  { type: 'session', version: 3, id: 's', timestamp: at(0), cwd: '/home/dev' },
  { type: 'message', id: 'a', parentId: null, timestamp: at(1), message: { role: 'user', content: [{ type: 'text', text: 'hi' }], timestamp: 1 } },
  {
    type: 'message',
    id: 'b',
    parentId: 'a',
    timestamp: at(2),
    message: {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'a file', thinkingSignature: 'x' },
        { type: 'text', text: 'I look.' },
        { type: 'toolCall', id: 'c', name: 'read', arguments: { path: 'a.ts' } },
      ],
      provider: 'anthropic',
      model: 'claude-sonnet-4-5',
      stopReason: 'toolUse',
      usage: { input: 700, output: 9, cacheRead: 50, cacheWrite: 3, totalTokens: 762, cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 } },
      timestamp: 2,
    },
  },
  {
    type: 'message',
    id: 'd',
    parentId: 'b',
    timestamp: at(3),
    message: {
      role: 'toolResult',
      toolCallId: 'c',
      toolName: 'read',
      content: [
        { type: 'text', text: 'line' },
        { type: 'image', data: IMAGE, mimeType: 'image/png' },
      ],
      isError: false,
      timestamp: 3,
    },
  },
  { type: 'custom', id: 'e', parentId: 'd', timestamp: at(4), customType: 'pi-context-manager', data: { saved: 1, dollars: 1 } },
  { type: 'compaction', id: 'f', parentId: 'e', timestamp: at(5), summary: 'so far', firstKeptEntryId: 'b', tokensBefore: 100 },
  { type: 'message', id: 'g', parentId: 'b', timestamp: at(6), message: { role: 'user', content: 'again', timestamp: 6 } },
]

const own = (uuid: string, parentUuid: string | null, second: number): object => ({ uuid, parentUuid, sessionId: 's', cwd: '/home/dev', timestamp: at(second) })
const CLAUDE = [
  { ...own('u', null, 1), type: 'user', message: { role: 'user', content: 'hi' } },
  {
    ...own('v', 'u', 2),
    type: 'assistant',
    requestId: 'r',
    message: {
      id: 'm',
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      content: [
        { type: 'thinking', thinking: 'a file', signature: 'x' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'c', name: 'Read', input: { file_path: '/home/dev/a.ts' } },
      ],
      usage: {
        ...{ input_tokens: 3, cache_read_input_tokens: 200, cache_creation_input_tokens: 40, output_tokens: 8 },
        cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 0 },
      },
    },
  },
  {
    ...own('w', 'v', 3),
    type: 'user',
    message: {
      role: 'user',
      content: [
        {
          ...{ type: 'tool_result', tool_use_id: 'c' },
          content: [
            { type: 'text', text: '1\tline' },
            { type: 'image', source: { type: 'base64', data: IMAGE } },
          ],
        },
      ],
    },
    toolUseResult: { type: 'text', file: { filePath: '/home/dev/a.ts', content: 'line', numLines: 1, startLine: 1, totalLines: 1 } },
  },
  { ...own('x', 'w', 4), type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'auto', preTokens: 100 } },
  { ...own('y', 'x', 5), type: 'user', isCompactSummary: true, message: { role: 'user', content: [{ type: 'text', text: 'so far' }] } },
]

const item = (second: number, payload: object, type = 'response_item'): object => ({ timestamp: at(second), type, payload })
const CODEX = [
  item(0, { id: 's', cwd: '/home/dev' }, 'session_meta'),
  item(1, { model: 'gpt-5.5', cwd: '/home/dev' }, 'turn_context'),
  item(2, { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }),
  item(3, { type: 'reasoning', summary: [{ type: 'summary_text', text: 'a file' }], encrypted_content: 'x' }),
  item(4, { type: 'function_call', call_id: 'c', name: 'shell', arguments: '{"command":["cat","a.ts"]}' }),
  item(5, { type: 'function_call_output', call_id: 'c', output: '{"output":"line","metadata":{"exit_code":0}}' }),
  item(6, { type: 'custom_tool_call', call_id: 'd', name: 'apply_patch', input: '*** Begin Patch' }),
  item(7, { type: 'custom_tool_call_output', call_id: 'd', output: 'done' }),
  item(8, { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'So.' }] }),
  item(
    9,
    {
      type: 'token_count',
      info: {
        ...{ total_token_usage: { input_tokens: 1000 }, model_context_window: 200_000 },
        last_token_usage: { input_tokens: 1000, cached_input_tokens: 400, output_tokens: 10, reasoning_output_tokens: 4 },
      },
    },
    'event_msg',
  ),
  item(10, { message: 'so far', replacement_history: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }] }, 'compacted'),
]

const GEMINI = [
  { sessionId: 's', projectHash: 'f', startTime: at(0), kind: 'main' },
  { id: 'u', type: 'user', timestamp: at(1), content: [{ text: 'hi' }] },
  {
    ...{ id: 'g', type: 'gemini', timestamp: at(2), content: 'I look.', model: 'gemini-2.5-pro', thoughts: [{ subject: 'a', description: 'file' }] },
    tokens: { input: 500, cached: 100, output: 5, thoughts: 3, tool: 0, total: 508 },
    toolCalls: [
      {
        ...{ id: 'c', name: 'read_file', args: { absolute_path: '/home/dev/a.ts' }, status: 'success', timestamp: at(2) },
        result: [{ functionResponse: { id: 'c', name: 'read_file', response: { output: 'line' } } }],
      },
    ],
  },
  { id: 'v', type: 'user', timestamp: at(3), content: 'again' },
]

const OPENCODE = {
  info: { id: 'ses_1', directory: '/home/dev', version: '1', time: { created: 1, updated: 2 } },
  messages: [
    { info: { id: 'm1', role: 'user', time: { created: 1 } }, parts: [{ type: 'text', text: 'hi' }] },
    {
      info: {
        ...{ id: 'm2', role: 'assistant', providerID: 'anthropic', modelID: 'claude-sonnet-4-5', time: { created: 2, completed: 3 }, cost: 0.1 },
        tokens: { input: 3, output: 8, reasoning: 0, cache: { read: 200, write: 40 } },
      },
      parts: [
        { type: 'text', text: 'I look.' },
        {
          ...{ type: 'tool', callID: 'c', tool: 'read' },
          state: { status: 'completed', input: { filePath: '/home/dev/a.ts' }, output: '00001| line', time: { start: 2, end: 3 } },
        },
      ],
    },
  ],
}

const MINI = {
  info: { submission: 'x', model_stats: { instance_cost: 1 } },
  trajectory_format: 'mini-swe-agent-1',
  messages: [
    { role: 'system', content: 'You are' },
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: 'I look.\n```bash\ncat a.ts\n```',
      extra: { response: { usage: { prompt_tokens: 10, completion_tokens: 2 }, model: 'gpt-5' } },
    },
    { role: 'user', content: '<returncode>0</returncode>\n<output>line</output>' },
  ],
}

/** One in this number of damaged sessions is replayed as well. */
const EACH = Number(process.env['CONTEXT_EACH'] ?? 40)

/** Values that an agent never writes. */
const ODD = [null, 7, -1, 'x', '', true, [], [null], {}, { type: null }, [[]], [{ type: 'text' }]]

/** All values that are in this one with another in place of one of its parts, and where. */
function* damaged(value: unknown, path = ''): Generator<[path: string, value: unknown]> {
  for (const odd of ODD) yield [`${path} = ${JSON.stringify(odd)}`, odd]
  if (typeof value !== 'object' || value === null) return
  for (const [name, part] of Object.entries(value)) {
    for (const [where, other] of damaged(part, `${path}.${name}`)) {
      yield [where, Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other }]
    }
  }
}

/** Why a file could not be read; undefined if it could, or if a sentence says why not. */
async function failure(name: string, text: string, replays: boolean): Promise<string | undefined> {
  const file = temporaryFile(name, text)
  try {
    const recording = await openRecording(file)
    const found = await survey(recording, () => {})
    if (replays) await replaySession(recording, found, options({ policies: ['recorded', 'pi-context-manager'] }))
    return undefined
  } catch (error) {
    return error instanceof NotReplayable ? undefined : (error as Error).stack?.split('\n').slice(0, 3).join(' ')
  }
}

describe('a value that the agent never writes leaves the rest readable', () => {
  test.each<[name: string, file: string, lines: readonly object[] | object]>([
    ['Pi', 's.jsonl', PI],
    ['Claude Code', 's.jsonl', CLAUDE],
    ['Codex', 's.jsonl', CODEX],
    ['Gemini CLI', `session-2026-03-01T10-00-0199beef.jsonl`, GEMINI],
    ['OpenCode', 's.json', OPENCODE],
    ['mini-swe-agent', 's.traj.json', MINI],
  ])('%s', async (_, name, given) => {
    const isLines = Array.isArray(given)
    const written = (value: unknown): string => (isLines ? `${(value as object[]).map((line) => JSON.stringify(line)).join('\n')}\n` : JSON.stringify(value))
    expect(await failure(name, written(given), true)).toBeUndefined()
    const failures: string[] = []
    let number = 0
    for (const [where, value] of damaged(given)) {
      if (isLines && !Array.isArray(value)) continue
      number += 1
      const why = await failure(name, written(value), number % EACH === 0)
      if (why !== undefined) failures.push(`${where}: ${why}`)
    }
    expect(failures).toEqual([])
  })
})

test('an answer without readable content keeps its bill, and the line is told', async () => {
  const [header, prompt, answer, ...rest] = PI as [object, object, { message: object }, ...object[]]
  const lines = [header, prompt, { ...answer, message: { ...answer.message, content: [null] } }, ...rest]
  const { steps, problems } = await stepsOf(temporaryFile('s.jsonl', lines.map((line) => JSON.stringify(line)).join('\n')))
  const answers = entriesOf(steps).filter(({ message }) => message.role === 'assistant')
  expect(answers.map(({ message }) => [message.content, message.usage?.input])).toEqual([[[], 700]])
  expect(problems).toMatchObject([{ line: 3, message: expect.stringContaining('is left out'), fatal: false }])
})

test('a count that is larger than all of them together counts as 0, and is doubted', async () => {
  const usage = { input: 700, output: 9, cacheRead: 50, cacheWrite: 200_001, totalTokens: 762 }
  const lines = PI.map((line) => ('message' in line && line.message!.role === 'assistant' ? { ...line, message: { ...line.message, usage } } : line))
  const { steps } = await stepsOf(temporaryFile('s.jsonl', lines.map((line) => JSON.stringify(line)).join('\n')))
  const counts = entriesOf(steps).flatMap(({ message }) => message.usage ?? [])
  expect(counts).toMatchObject([{ input: 700, output: 9, cacheRead: 50, cacheWrite: 0, isDoubtful: true }])
})
