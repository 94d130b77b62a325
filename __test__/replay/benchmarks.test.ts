/** Trajectories of mini-swe-agent, and Codex's first rollouts, as conversations in the words of Pi. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { openRecording, sessionFiles } from '../../lib/replay/open.ts'
import { callsOf, textOf } from '../../lib/replay/recording.ts'
import type { Step } from '../../lib/replay/recording.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { cli, entriesOf, stepsOf, temporaryFile, temporaryFolder } from './support.ts'

afterEach(cleanUp)

function brief(steps: readonly Step[]): unknown[] {
  return entriesOf(steps).map(({ message }) => {
    const calls = callsOf(message).map(({ arguments: args }) => args)
    return [message.role, textOf(message), ...(calls.length > 0 ? [calls] : []), ...(message.isError === true ? ['failed'] : [])]
  })
}

const INFO = {
  config: { model: { model_name: 'anthropic/claude-sonnet-4-5' }, environment: { cwd: '/testbed' } },
  model_stats: { instance_cost: 0.1, api_calls: 2 },
  exit_status: 'Submitted',
  submission: '',
}

const usage = { prompt_tokens: 1000, completion_tokens: 20, cache_read_input_tokens: 700, cache_creation_input_tokens: 200 }

/** The older form: commands are code blocks, outputs are a user's messages. */
const IN_TEXT = {
  info: INFO,
  messages: [
    { role: 'system', content: 'You can use a shell.' },
    { role: 'user', content: 'Please solve this issue' },
    { role: 'assistant', content: 'THOUGHT: look\n\n```bash\nls -la\n```', extra: { response: { usage } } },
    { role: 'user', content: '<returncode>1</returncode>\n<output>\nno such folder</output>' },
    { role: 'assistant', content: 'no command at all' },
    { role: 'user', content: 'Please provide EXACTLY ONE action' },
    { role: 'assistant', content: '```bash\necho COMPLETE\n```' },
  ],
}

/** The newer form: tool calls. */
const WITH_TOOLS = {
  trajectory_format: 'mini-swe-agent-1.1',
  instance_id: 'django__django-1',
  info: INFO,
  messages: [
    { role: 'system', content: 'You can use a shell.' },
    { role: 'user', content: [{ type: 'text', text: 'Please solve this issue' }], extra: { timestamp: 100 } },
    {
      role: 'assistant',
      content: 'Look first',
      reasoning_content: 'Hm.',
      tool_calls: [
        { id: 'x', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } },
        { id: 'y', type: 'function', function: { name: 'bash', arguments: '{"command":"false"}' } },
      ],
      extra: { timestamp: 110, response: { usage: { prompt_tokens: 50, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 10 } } } },
    },
    { role: 'tool', tool_call_id: 'x', content: 'a.py', extra: { returncode: 0, timestamp: 111 } },
    { role: 'tool', tool_call_id: 'y', content: '', extra: { returncode: 1 } },
    { role: 'exit', content: 'Submitted' },
  ],
}

describe('a trajectory of mini-swe-agent', () => {
  test('with commands in its texts', async () => {
    const file = temporaryFile('run.traj.json', JSON.stringify(IN_TEXT))
    const recording = await openRecording(file)
    expect(recording.origin).toEqual({ format: 'mini-swe-agent', version: 0, id: 'unknown', cwd: '/testbed' })
    const { steps, problems } = await stepsOf(file)
    expect(problems).toEqual([])
    expect(brief(steps)).toEqual([
      ['user', 'Please solve this issue'],
      ['assistant', 'THOUGHT: look', [{ command: 'ls -la' }]],
      ['toolResult', '<returncode>1</returncode>\n<output>\nno such folder</output>', 'failed'],
      ['assistant', 'no command at all'],
      ['user', 'Please provide EXACTLY ONE action'],
      ['assistant', '', [{ command: 'echo COMPLETE' }]],
    ])
    expect(entriesOf(steps)[1]?.message).toMatchObject({
      provider: 'anthropic',
      model: 'claude-sonnet-4-5',
      usage: { input: 100, output: 20, cacheRead: 700, cacheWrite: 200 },
    })
  })

  test('with tool calls, gzipped, in a folder', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'inner'))
    const file = join(folder, 'inner', 'django.traj.json.gz')
    writeFileSync(file, gzipSync(JSON.stringify(WITH_TOOLS)))
    writeFileSync(join(folder, 'preds.json'), '{"django": {}}')
    const found: string[] = []
    for await (const one of sessionFiles(folder)) found.push(one)
    expect(found).toEqual([file])
    const recording = await openRecording(file)
    expect(recording.origin.id).toBe('django__django-1')
    const steps: Step[] = []
    for await (const step of recording.steps(() => {})) steps.push(step)
    expect(brief(steps)).toEqual([
      ['user', 'Please solve this issue'],
      ['assistant', 'Look first', [{ command: 'ls' }, { command: 'false' }]],
      ['toolResult', 'a.py'],
      ['toolResult', '', 'failed'],
    ])
    expect(entriesOf(steps).map(({ at }) => at)).toEqual([100_000, 110_000, 111_000, 111_000])
    expect(entriesOf(steps)[1]?.message.usage).toEqual({ input: 40, output: 5, cacheRead: 10, cacheWrite: 0 })
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({ exit: 1 })
    const { code, stdout, stderr } = await cli(['replay', file])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('of mini-swe-agent')
  })

  test('that is cut off is no session', async () => {
    const file = temporaryFile('run.traj.json', JSON.stringify(IN_TEXT).slice(0, -5))
    await expect(openRecording(file)).rejects.toThrow('cut off')
  })
})

test('a rollout of the first versions of Codex has items without envelopes', async () => {
  const lines = [
    { id: '0c3a', timestamp: '2025-05-05T10:00:00.000Z', instructions: null, git: { branch: 'main' } },
    { record_type: 'state' },
    { type: 'message', id: null, role: 'user', content: [{ type: 'input_text', text: '<environment_context>linux</environment_context>' }] },
    { type: 'message', id: null, role: 'user', content: [{ type: 'input_text', text: 'Fix it' }] },
    { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'Look' }], encrypted_content: null },
    { type: 'function_call', id: 'fc', name: 'shell', arguments: '{"command":["bash","-lc","ls"]}', call_id: 'c' },
    { type: 'function_call_output', call_id: 'c', output: '{"output":"a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}' },
    { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] },
  ]
  const file = temporaryFile('rollout-2025-05-05.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'))
  const recording = await openRecording(file)
  expect(recording.origin).toEqual({ format: 'codex', version: 0, id: '0c3a', cwd: '/' })
  const { steps, problems } = await stepsOf(file)
  expect(problems).toEqual([])
  expect(brief(steps)).toEqual([
    ['custom', '<environment_context>linux</environment_context>'],
    ['user', 'Fix it'],
    ['assistant', '', [{ command: 'ls' }]],
    ['toolResult', 'a.ts\n'],
    ['assistant', 'Done.'],
  ])
})
