/** Calls under the engine's names and back, and outputs, where no agent's corpus has the case. */
import { describe, expect, test } from 'vitest'
import { engineCall, hostArguments, piCall, withoutLineNumbers } from '../../lib/tools/index.ts'
import { hostNamed, hostOfSession } from '../../lib/core/index.ts'

describe('engineCall', () => {
  test.each([
    ['mcp__context__activate', { id: 'x' }, { tool: 'mcp__context__activate', args: { id: 'x' } }],
    ['Read', { file_path: 7 }, { tool: 'read', args: { path: 7 } }],
    ['Read', { file_path: '/a', path: '/b' }, { tool: 'read', args: { file_path: '/a', path: '/b' }, reads: '/b' }],
  ])('%s %j', (name, args, wanted) => {
    expect(engineCall(name, args)).toEqual(wanted)
  })
})

describe('hostArguments', () => {
  test.each([
    ['Write', { file_path: '/w/a', content: 'long' }, { path: 'a', content: '[marker]' }, { file_path: '/w/a', content: '[marker]' }],
    [
      'Edit',
      { file_path: '/w/a', old_string: 'x', new_string: 'y', replace_all: true },
      { path: 'a', oldText: 'x', newText: '[m]', replace_all: true },
      { file_path: '/w/a', old_string: 'x', new_string: '[m]', replace_all: true },
    ],
    [
      'MultiEdit',
      { file_path: '/a', edits: [{ old_string: 'x', new_string: 'y' }] },
      { path: '/a', edits: [{ oldText: '[m]', newText: 'y' }] },
      { file_path: '/a', edits: [{ old_string: '[m]', new_string: 'y' }] },
    ],
    ['exec_command', { cmd: 'long', workdir: '/' }, { command: '[m]', workdir: '/' }, { cmd: '[m]', workdir: '/' }],
    ['shell', { command: ['bash', '-lc', 'long'] }, { command: '[m]' }, { command: ['bash', '-lc', '[m]'] }],
    ['run_commands', { commands: ['long'] }, { command: '[m]' }, { commands: ['[m]'] }],
    ['run_commands', { commands: ['one', 'two'] }, { commands: ['one', '[m]'] }, { commands: ['one', '[m]'] }],
    ['editor', { path: '/w/a', old_text: 'x', new_text: 'y' }, { path: 'a', oldText: 'x', newText: '[m]' }, { path: '/w/a', old_text: 'x', new_text: '[m]' }],
    ['create', { path: '/w/a', file_text: 'long' }, { path: 'a', content: '[m]' }, { path: '/w/a', file_text: '[m]' }],
    ['Other', { a: 1 }, { a: 2 }, { a: 2 }],
  ])('%s', (name, args, edited, wanted) => {
    expect(hostArguments(name, args, edited)).toEqual(wanted)
  })

  test('unchanged arguments come back as they were', () => {
    for (const [name, args] of [
      ['Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }],
      ['shell', { command: ['git', 'log'], timeout: 3 }],
      ['replace', { file_path: '/a', old_string: 'x', new_string: 'y', expected_replacements: 2 }],
    ] as const) {
      expect(hostArguments(name, args, engineCall(name, args).args)).toEqual(args)
    }
  })
})

test('piCall has the form of the tools of Pi', () => {
  expect(piCall('Edit', { file_path: '/a', old_string: 'x', new_string: 'y' })).toEqual(['edit', { path: '/a', edits: [{ oldText: 'x', newText: 'y' }] }])
  expect(piCall('WebFetch', { url: 'u' })).toEqual(['WebFetch', { url: 'u' }])
})

test('withoutLineNumbers leaves plain text alone', () => {
  expect(withoutLineNumbers('a\n1 b')).toBe('a\n1 b')
  expect(withoutLineNumbers('x\n 1→b')).toBe('x\nb')
})

test('hosts are recognized by their own names', () => {
  expect(hostNamed('claude-cli/2.1.331 (external, sdk-cli)')).toBe('claude-code')
  expect(hostNamed('codex_exec/0.169.0 (Debian 12.0.0; x86_64)')).toBe('codex')
  expect(hostNamed('QwenCode/0.24.4 (linux; x64)')).toBe('qwen-code')
  expect(hostNamed('Kilo-Code/7.7.9 ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14')).toBe('kilo')
  expect(hostNamed('kimi-code-cli/2.1.0')).toBe('kimi')
  expect(hostNamed('GitHubCopilotChat/0.31')).toBe('agent')
  expect(hostNamed('OpenAI/JS 5.0')).toBe('agent')
  expect(hostOfSession('claude-code:9cae')).toBe('claude-code')
  expect(hostOfSession('01a20e93-fb24-7abc-8def-0123456789ab')).toBe('pi')
  for (const id of ['constructor:x', 'review-42', 'a0c9f2d1-fb24-4abc-8def-0123456789ab', '01a20e93-fb24'])
    expect([id, hostOfSession(id)]).toEqual([id, 'library'])
})
