/** Recordings of other programs than Pi, and files that are packed or left out. */
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { openRecording, sessionFiles } from '../../lib/recordings/open.ts'
import { callsOf, LeftOut, textOf } from '../../lib/recordings/recording.ts'
import type { Recording, Step } from '../../lib/recordings/recording.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, entriesOf, fixture, temporaryFile, temporaryFolder } from './support.ts'

afterEach(cleanUp)

async function read(file: string): Promise<{ recording: Recording; steps: Step[] }> {
  const recording = await openRecording(file)
  const steps: Step[] = []
  for await (const step of recording.steps((problem) => expect(problem).toBeUndefined())) steps.push(step)
  return { recording, steps }
}

/** Steps in short: role, text, calls. */
function short(steps: readonly Step[]): unknown[] {
  return steps.map((step) => {
    if (step.kind !== 'message') return step.kind
    const { message } = step.entry
    const calls = callsOf(message).map(({ name, arguments: args }) => [name, args])
    return [message.role, textOf(message), ...(calls.length > 0 ? [calls] : []), ...(message.isError === true ? ['failed'] : [])]
  })
}

describe('Claude Code', () => {
  const line = (uuid: string, parentUuid: string | null, role: string, content: unknown, rest: object = {}) =>
    JSON.stringify({
      ...{ uuid, parentUuid, type: role, sessionId: 's', cwd: '/x', timestamp: '2026-01-01T00:00:00Z' },
      ...{ message: { id: uuid, role, content } },
      ...rest,
    })
  const others = ['permission-mode', 'worktree-state', 'attachment', 'something-new']

  test.each(others)('a line of type %s is counted and left out, also as the first', async (type) => {
    const other = JSON.stringify({ type, uuid: `x-${type}`, parentUuid: null, content: 'text' })
    const lines = [
      ...Array.from({ length: 300 }, () => other),
      line('u', `x-${type}`, 'user', 'one'),
      JSON.stringify({ type, uuid: 'y', parentUuid: 'u', message: 'no message' }),
      line('a', 'y', 'assistant', [{ type: 'text', text: 'first' }]),
      JSON.stringify({ noType: true }),
      JSON.stringify({ type: 'user', uuid: 'z', message: null }),
    ]
    const { recording, steps } = await read(temporaryFile('s.jsonl', `${lines.join('\n')}\n`))
    expect(short(steps)).toEqual([
      ['user', 'one'],
      ['assistant', 'first'],
    ])
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({ [type]: 301, 'lines without a type': 1, user: 1 })
  })

  test('calls of subagents are counted, and a subagent’s own file is named', async () => {
    const side = { isSidechain: true }
    const lines = [
      line('u', null, 'user', 'one'),
      line('a', 'u', 'assistant', [{ type: 'text', text: 'first' }]),
      line('s1', null, 'user', 'hidden', side),
      line('s2', 's1', 'assistant', [{ type: 'text', text: 'aside' }], side),
      line('s3', 's2', 'assistant', [{ type: 'text', text: 'again' }], { ...side, message: { id: 's2', content: [] } }),
      line('s4', 's3', 'assistant', [{ type: 'text', text: 'more' }], side),
    ]
    const { recording, steps } = await read(temporaryFile('s.jsonl', `${lines.join('\n')}\n`))
    expect(short(steps)).toHaveLength(2)
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({ 'calls of subagents': 2 })
    const own = temporaryFile('agent-1.jsonl', `${lines.slice(2).join('\n')}\n`)
    await expect(openRecording(own)).rejects.toThrow(LeftOut)
    const { code, stdout, stderr } = await cli(['replay', own, fixture('claude-code.jsonl'), '--json', '--policies', 'pi'])
    expect([code, stderr]).toEqual([0, expect.stringContaining(`left out: ${own}: the conversation of a subagent`)])
    expect(JSON.parse(stdout).leftOut).toEqual([{ file: own, message: expect.stringContaining('session s') }])
  })
})

describe('Codex', () => {
  const item = (payload: object) => ({ type: 'response_item', payload })
  const rollout = (...lines: object[]) => lines.map((one, n) => JSON.stringify({ timestamp: new Date(n * 1000).toISOString(), ...one })).join('\n')
  const meta = { type: 'session_meta', payload: { id: 'c', cwd: '/home/me/shop', cli_version: '0.65.0', source: 'cli' } }
  const said = (role: string, text: string) => item({ type: 'message', role, content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }] })
  const counted = (input: number, cached: number) => ({
    type: 'event_msg',
    payload: { type: 'token_count', info: { last_token_usage: { input_tokens: input, cached_input_tokens: cached, output_tokens: 7 } } },
  })

  test('a rollout is a conversation in the words of Pi', async () => {
    const file = temporaryFile(
      'rollout.jsonl',
      rollout(
        meta,
        said('developer', 'rules'),
        said('user', '<environment_context>linux</environment_context>'),
        said('user', 'Fix it'),
        { type: 'event_msg', payload: { type: 'user_message', message: 'Fix it' } },
        { type: 'turn_context', payload: { model: 'gpt-5-codex' } },
        item({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Look first' }], encrypted_content: 'xyz' }),
        item({ type: 'function_call', name: 'shell', arguments: '{"command":["bash","-lc","cat a.ts"],"workdir":"/work"}', call_id: '1' }),
        item({ type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch', call_id: '2' }),
        counted(1000, 800),
        counted(1000, 800),
        item({ type: 'function_call_output', call_id: '1', output: '{"output":"no file","metadata":{"exit_code":1}}' }),
        item({ type: 'custom_tool_call_output', call_id: '2', output: 'Exit code: 0\nOutput:\nDone' }),
        item({ type: 'function_call_output', call_id: 'lost', output: 'whose?' }),
        item({ type: 'ghost_snapshot' }),
        said('assistant', 'It is done.'),
        counted(2000, 1000),
        { type: 'compacted', payload: { message: 'All is well' } },
        said('user', 'Go on'),
        item({ type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}', call_id: '3' }),
        item({ type: 'function_call_output', call_id: '3', output: [{ type: 'input_text', text: 'a.ts' }] }),
        { type: 'world_state', payload: {} },
      ),
    )
    const { recording, steps } = await read(file)
    expect(recording.origin).toEqual({ format: 'codex', version: 0, id: 'c', cwd: '/home/me/shop' })
    expect(short(steps)).toEqual([
      ['custom', 'rules'],
      ['custom', '<environment_context>linux</environment_context>'],
      ['user', 'Fix it'],
      [
        'assistant',
        '',
        [
          ['bash', { command: 'cat a.ts', workdir: '/work' }],
          ['apply_patch', { input: '*** Begin Patch' }],
        ],
      ],
      ['toolResult', 'no file', 'failed'],
      ['toolResult', 'Exit code: 0\nOutput:\nDone'],
      ['assistant', 'It is done.'],
      'compaction',
      ['user', 'Go on'],
      ['assistant', '', [['bash', { command: 'ls' }]]],
      ['toolResult', 'a.ts'],
    ])
    const [first, second] = entriesOf(steps).filter(({ message }) => message.role === 'assistant')
    expect(first?.message).toMatchObject({ provider: 'openai', model: 'gpt-5-codex', stopReason: 'toolUse' })
    expect(first?.message.content?.[0]).toMatchObject({ type: 'thinking', thinking: 'Look first' })
    expect(first?.message.usage).toEqual({ input: 200, output: 7, cacheRead: 800, cacheWrite: 0 })
    expect(second?.message.usage).toMatchObject({ input: 1000, cacheRead: 1000 })
    expect(new Set(entriesOf(steps).map(({ key }) => key)).size).toBe(entriesOf(steps).length)
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({
      'outputs without their call': 1,
      ghost_snapshot: 1,
      world_state: 1,
    })
    expect((await cli(['replay', file, '--quiet'])).stderr).toBe('')
  })

  test.each([
    ['a subagent', { source: { subagent: 'review' } }],
    ['a thread of an agent', { thread_source: 'subagent' }],
  ])('%s is named', async (_, more) => {
    const text = rollout({ ...meta, payload: { ...meta.payload, ...more } }, said('user', 'x'))
    await expect(openRecording(temporaryFile('rollout.jsonl', text))).rejects.toThrow(LeftOut)
  })

  test.each([
    ['no payload', { type: 'response_item' }],
    ['items that are no objects', item({ type: 'message', role: 'user', content: [null, 3, { type: 'input_text' }] })],
    ['arguments that are not JSON', item({ type: 'function_call', name: 'x', arguments: '{', call_id: 'q' })],
    ['an output of another shape', item({ type: 'function_call_output', call_id: 'q', output: { body: [1] } })],
    ['a compaction without a text', { type: 'compacted', payload: { replacement_history: [null, { content: 'x' }] } }],
  ])('%s does no harm', async (_, line) => {
    const text = rollout(meta, said('user', 'a'), line, said('assistant', 'b'))
    const { steps } = await read(temporaryFile('rollout.jsonl', text))
    expect(short(steps).at(-1)).toEqual(expect.arrayContaining(['assistant']))
  })
})

describe('OpenCode', () => {
  const tool = (name: string, input: object, state: object) => ({ type: 'tool', callID: `${name}-1`, tool: name, state: { input, ...state } })
  const tokens = { input: 10, output: 5, reasoning: 1, cache: { read: 90, write: 3 } }
  const session = {
    info: { id: 'ses_1', directory: '/home/me/shop', version: '1.0.0', title: 'x' },
    messages: [
      {
        info: { id: 'm1', role: 'user', time: { created: 1000 } },
        parts: [
          { type: 'text', text: 'Fix it' },
          { type: 'text', text: 'no', ignored: true },
        ],
      },
      {
        info: { id: 'm2', role: 'assistant', modelID: 'claude-sonnet-4-5', providerID: 'anthropic', time: { created: 2000 }, tokens },
        parts: [
          { type: 'step-start' },
          { type: 'reasoning', text: 'Look' },
          tool('read', { filePath: '/home/me/shop/a.ts' }, { status: 'completed', output: 'text', time: { start: 1, end: 2500 } }),
          tool('edit', { filePath: '/home/me/shop/a.ts', oldString: 'a', newString: 'b' }, { status: 'error', error: 'not found' }),
          { type: 'step-finish', tokens },
          { type: 'patch', files: [] },
          { type: 'step-start' },
          { type: 'text', text: 'Done.' },
          { type: 'step-finish', tokens: { ...tokens, input: 20 } },
        ],
      },
      { info: { id: 'm3', role: 'user', time: { created: 3000 } }, parts: [{ type: 'compaction', auto: true }] },
      { info: { id: 'm4', role: 'assistant', summary: true, time: { created: 3100 } }, parts: [{ type: 'text', text: 'All is well' }] },
      { info: { id: 'm5', role: 'user', time: { created: 4000 } }, parts: [{ type: 'text', text: 'Go on' }] },
    ],
  }

  test('an export is a conversation in the words of Pi', async () => {
    const { recording, steps } = await read(temporaryFile('s.json', JSON.stringify(session, null, 2)))
    expect(recording.origin).toEqual({ format: 'opencode', version: 0, id: 'ses_1', cwd: '/home/me/shop' })
    expect(short(steps)).toEqual([
      ['user', 'Fix it'],
      [
        'assistant',
        '',
        [
          ['read', { path: '/home/me/shop/a.ts' }],
          ['edit', { path: '/home/me/shop/a.ts', edits: [{ oldText: 'a', newText: 'b' }] }],
        ],
      ],
      ['toolResult', 'text'],
      ['toolResult', 'not found', 'failed'],
      ['assistant', 'Done.'],
      'compaction',
      ['user', 'Go on'],
    ])
    const [first, second] = entriesOf(steps).filter(({ message }) => message.role === 'assistant')
    expect(first?.message).toMatchObject({ provider: 'anthropic', usage: { input: 10, output: 6, cacheRead: 90, cacheWrite: 3 } })
    expect(second?.message.usage?.input).toBe(20)
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({ patch: 1, compaction: 1 })
  })

  test.each([
    ['{"info":{"id":"s","parentID":"p"},"messages":[]}', 'subagent of OpenCode’s session p'.replace('’', "'")],
    ['{"info":{"id":"s"},', 'cut off'],
    ['{"other":1}', 'no export'],
  ])('%s is not replayed', async (text, reason) => {
    await expect(openRecording(temporaryFile('s.json', text))).rejects.toThrow(reason)
  })

  test('a folder gives exports, rollouts, packed and linked files, and no other JSON', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'sub'))
    writeFileSync(join(folder, 'export.json'), JSON.stringify(session))
    writeFileSync(join(folder, 'package.json'), '{"name":"x"}')
    writeFileSync(join(folder, 'sub', 'b.jsonl.gz'), gzipSync(readFileSync(fixture('pi-version-1.jsonl'))))
    copyFileSync(fixture('pi-version-2.jsonl'), join(folder, 'a.jsonl'))
    symlinkSync(join(folder, 'a.jsonl'), join(folder, 'link.jsonl'))
    symlinkSync(folder, join(folder, 'loop.jsonl'))
    symlinkSync(join(folder, 'nothing'), join(folder, 'broken.jsonl'))
    const files: string[] = []
    for await (const file of sessionFiles(folder)) files.push(file.slice(folder.length + 1))
    expect(files).toEqual(['a.jsonl', 'export.json', 'link.jsonl', 'sub/b.jsonl.gz'])
  })
})

describe('gzip', () => {
  test('a packed file is the same recording', async () => {
    const packed = join(temporaryFolder(), 's.jsonl.gz')
    writeFileSync(packed, gzipSync(readFileSync(fixture('pi-version-3.jsonl'))))
    expect((await read(packed)).steps).toEqual((await read(fixture('pi-version-3.jsonl'))).steps)
  })

  test.each([
    ['cut off', gzipSync(readFileSync(fixture('pi-version-3.jsonl'))).subarray(0, 9000), 'cut off'],
    ['not a gzip file', Buffer.from('plain text'), 'not a gzip file'],
  ])('one that is %s is told', async (_, bytes, reason) => {
    const file = join(temporaryFolder(), 's.jsonl.gz')
    writeFileSync(file, bytes)
    const { code, stderr } = await cli(['replay', file, '--policies', 'pi'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)])
  })
})
