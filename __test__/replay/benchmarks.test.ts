/** Trajectories of mini-swe-agent, and Codex's first rollouts, as conversations in the words of Pi. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { openRecording, sessionFiles } from '../../lib/recordings/open.ts'
import { callsOf, textOf } from '../../lib/recordings/recording.ts'
import type { Step } from '../../lib/recordings/recording.ts'
import { cleanUp } from '../../rig/cleanup.ts'
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

/**
 * The newer form: tool calls. Each field is as version 2.2.7 writes it, with LiteLLM's answer of DeepSeek (the trajectories in the
 * folder `output` of the repository SWE-agent/mini-swe-agent, under the MIT licence); the texts are ours.
 */
const WITH_TOOLS = {
  info: { ...INFO, mini_version: '2.2.7', model_stats: { instance_cost: 0.0006, api_calls: 2 } },
  messages: [
    { role: 'system', content: 'You can use a shell.' },
    { role: 'user', content: 'Please solve this issue' },
    answered('Look first', ['ls', 'false'], { prompt: 50, output: 5, cached: 10, at: 110.25 }),
    observed('x0', 'a.py\n', 0, 111),
    observed('x1', '', 1, 111.5),
    answered('Submit', ['echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt'], { prompt: 90, output: 9, cached: 64, at: 112 }),
    { role: 'exit', content: 'diff --git a/a.py b/a.py\n', extra: { exit_status: 'Submitted', submission: 'diff --git a/a.py b/a.py\n' } },
  ],
  trajectory_format: 'mini-swe-agent-1.1',
  instance_id: 'django__django-1',
}

function answered(content: string, commands: readonly string[], { prompt, output, cached, at }: Record<'prompt' | 'output' | 'cached' | 'at', number>) {
  const tool_calls = commands.map((command, index) => ({
    index,
    function: { arguments: JSON.stringify({ command }), name: 'bash' },
    id: `x${index}`,
    type: 'function',
  }))
  const message = { content, role: 'assistant', tool_calls, function_call: null }
  const usage = {
    completion_tokens: output,
    prompt_tokens: prompt,
    total_tokens: prompt + output,
    completion_tokens_details: null,
    prompt_tokens_details: { cached_tokens: cached },
    prompt_cache_hit_tokens: cached,
    prompt_cache_miss_tokens: prompt - cached,
  }
  const response = {
    id: 'r',
    created: 1,
    model: 'deepseek-chat',
    object: 'chat.completion',
    choices: [{ finish_reason: 'tool_calls', index: 0, message, provider_specific_fields: {} }],
    usage,
  }
  const actions = commands.map((command, index) => ({ command, tool_call_id: `x${index}` }))
  return { ...message, provider_specific_fields: null, extra: { actions, response, cost: 0.0003, timestamp: at } }
}

function observed(tool_call_id: string, raw_output: string, returncode: number, timestamp: number) {
  const content = `<returncode>${returncode}</returncode>\n<output>\n${raw_output}</output>`
  return { content, extra: { raw_output, returncode, timestamp, exception_info: '' }, tool_call_id, role: 'tool' }
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
      ['toolResult', '<returncode>0</returncode>\n<output>\na.py\n</output>'],
      ['toolResult', '<returncode>1</returncode>\n<output>\n</output>', 'failed'],
      ['assistant', 'Submit', [{ command: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt' }]],
    ])
    expect(entriesOf(steps).map(({ at }) => at)).toEqual([0, 110_250, 111_000, 111_500, 112_000])
    expect(entriesOf(steps)[1]?.message.usage).toEqual({ input: 40, output: 5, cacheRead: 10, cacheWrite: 0 })
    expect(Object.fromEntries(recording.skipped ?? [])).toEqual({ exit: 1 })
    const { code, stdout, stderr } = await cli(['replay', file])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('of mini-swe-agent')
  })

  test('that is cut off is not a session', async () => {
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
