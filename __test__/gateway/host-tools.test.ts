/** The hosts' tools under the engine's names, and back. */
import { describe, expect, test } from 'vitest'
import { changesOf } from '../../lib/host-tools/changes.ts'
import { engineCall, hostArguments, hostNamed, hostOfSession, outputAlone, piCall, shownBy, shownLines, withoutLineNumbers } from '../../lib/host-tools/index.ts'

describe('a shell command that shows a file', () => {
  test.each([
    ['cat a.txt', { path: 'a.txt' }],
    ['cat -- "a b.txt"', { path: 'a b.txt' }],
    ["sed -n '1,200p' src/a.ts", { path: 'src/a.ts', offset: 1, limit: 200 }],
    ['sed -n 10,20p /x/a-b.ts ', { path: '/x/a-b.ts', offset: 10, limit: 11 }],
    ["sed -n '5,$p' a", { path: 'a', offset: 5 }],
    ["nl -ba 'a b' | sed -n '3,4p'", { path: 'a b', offset: 3, limit: 2 }],
    ['head -n 5 a', { path: 'a', offset: 1, limit: 5 }],
    ['head -5 a', { path: 'a', offset: 1, limit: 5 }],
  ])('%s', (command, wanted) => {
    expect(shownBy(command)).toEqual(wanted)
  })

  test.each(['cat a b', 'cat *.ts', 'cat $HOME/a', 'cat a > b', 'cat a; rm a', 'cat a | wc', 'cat <<EOF', 'cat', 'cat -A a', 'cat `x`', 'cat "$(x)"', 'cat ~/a', 'sed -n 5p a', 'sed -i 1,2p a', 'tail -5 a', 'cd x && cat a', 'cat a\nrm b'])('%s is none', (command) => {
    expect(shownBy(command)).toBeUndefined()
  })

  test('the words of Codex before an output are not part of it', () => {
    const text = 'one\nOutput:\ntwo'
    expect(outputAlone(`Chunk ID: f5f6\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\n${text}`)).toBe(text)
    expect(outputAlone(`Exit code: 0\nWall time: 0 seconds\nOutput:\n${text}`)).toBe(text)
    expect(outputAlone(text)).toBe(text)
  })

  test("of Cline's list of results, the one in it; a failed one, several, and other JSON stay", () => {
    const one = { query: 'cat a', result: 'x\n"y"\n', success: true }
    expect(outputAlone(JSON.stringify([one]))).toBe(one.result)
    for (const list of [[one, one], [{ ...one, success: false }], [{ ...one, result: 7 }], [{ query: 'x' }], [null]]) expect(outputAlone(JSON.stringify(list))).toBe(JSON.stringify(list))
    expect(outputAlone('[{"query":')).toBe('[{"query":')
  })
})

describe('engineCall', () => {
  test.each([
    ['Read', { file_path: '/a', offset: 3 }, { tool: 'read', args: { path: '/a', offset: 3 }, reads: '/a' }],
    ['read', { filePath: '/a' }, { tool: 'read', args: { path: '/a' }, reads: '/a' }],
    ['read_file', { absolute_path: '/a' }, { tool: 'read', args: { path: '/a' }, reads: '/a' }],
    ['Write', { file_path: '/a', content: 'x' }, { tool: 'write', args: { path: '/a', content: 'x' }, writes: ['/a'] }],
    ['Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }, { tool: 'edit', args: { path: '/a', oldText: 'x', newText: 'y' }, writes: ['/a'] }],
    ['MultiEdit', { file_path: '/a', edits: [{ old_string: 'x', new_string: 'y' }] }, { tool: 'edit', args: { path: '/a', edits: [{ oldText: 'x', newText: 'y' }] }, writes: ['/a'] }],
    ['replace', { file_path: '/a', old_string: 'x', new_string: 'y' }, { tool: 'edit', args: { path: '/a', oldText: 'x', newText: 'y' }, writes: ['/a'] }],
    ['Bash', { command: 'ls' }, { tool: 'bash', args: { command: 'ls' } }],
    ['exec_command', { cmd: 'ls' }, { tool: 'bash', args: { command: 'ls' } }],
    ['shell', { command: ['bash', '-lc', 'ls | wc'] }, { tool: 'bash', args: { command: 'ls | wc' } }],
    ['shell', { command: ['git', 'log'] }, { tool: 'bash', args: { command: 'git log' } }],
    ['run_commands', { commands: ['git log'] }, { tool: 'bash', args: { command: 'git log' } }],
    ['run_commands', { commands: ['bash -c x', 'ls'] }, { tool: 'run_commands', args: { commands: ['bash -c x', 'ls'] } }],
    ['run_commands', { commands: [] }, { tool: 'run_commands', args: { commands: [] } }],
    ['editor', { path: '/a', old_text: 'x', new_text: 'y' }, { tool: 'edit', args: { path: '/a', oldText: 'x', newText: 'y' }, writes: ['/a'] }],
    ['editor', { path: '/a', old_text: null, new_text: 'y' }, { tool: 'edit', args: { path: '/a', oldText: null, newText: 'y' }, writes: ['/a'] }],
    ['view', { path: '/a', view_range: [2, 3] }, { tool: 'read', args: { path: '/a', view_range: [2, 3] }, reads: '/a' }],
    ['create', { path: '/a', file_text: 'x' }, { tool: 'write', args: { path: '/a', content: 'x' }, writes: ['/a'] }],
    ['Glob', { pattern: '*.ts' }, { tool: 'find', args: { pattern: '*.ts' } }],
    ['list_dir', { dir_path: '/a' }, { tool: 'ls', args: { path: '/a' } }],
    ['mcp__context__activate', { id: 'x' }, { tool: 'mcp__context__activate', args: { id: 'x' } }],
    ['Read', { file_path: 7 }, { tool: 'read', args: { path: 7 } }],
    ['Read', { file_path: '/a', path: '/b' }, { tool: 'read', args: { file_path: '/a', path: '/b' }, reads: '/b' }],
  ])('%s %j', (name, args, wanted) => {
    expect(engineCall(name, args)).toEqual(wanted)
  })

  test('patch names the files that it touches', () => {
    const input = '*** Begin Patch\n*** Update File: a.ts\n*** Move to: b.ts\n@@\n-x\n+y\n*** Add File: c.ts\n+z\n*** Delete File: d.ts\n*** End Patch'
    expect(engineCall('apply_patch', { input })).toEqual({ tool: 'apply_patch', args: { input }, writes: ['a.ts', 'b.ts', 'c.ts', 'd.ts'] })
  })

  test('script names its commands and its patches', () => {
    const input = 'const r = await tools.exec_command({ cmd: "cat \\"a b\\"", workdir: "/" });\nawait tools.exec_command({cmd: \'echo "x"\'})\ntext(r)'
    expect(engineCall('exec', { input })).toEqual({ tool: 'bash', args: { command: 'cat "a b"\necho "x"' } })
    const patch = 'await tools.apply_patch("*** Begin Patch\\n*** Add File: c.ts\\n+z\\n*** End Patch")'
    expect(engineCall('exec', { input: patch }).writes).toEqual(['c.ts'])
    expect(engineCall('exec', { input: 'text(1)' })).toEqual({ tool: 'exec', args: { input: 'text(1)' } })
  })
})

const PATCH = '*** Begin Patch\n*** Update File: a.ts\n@@ one\n x\n-y\n+z\n@@\n-last\n*** Add File: c.ts\n+z\n*** Delete File: d.ts\n*** End Patch'

test.each([
  ['Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }, [{ path: '/a', oldTexts: ['x'] }]],
  ['MultiEdit', { file_path: '/a', edits: [{ old_string: 'x', new_string: 'y' }, { old_string: 'v', new_string: 'w' }] }, [{ path: '/a', oldTexts: ['x', 'v'] }]],
  ['edit', { filePath: '/a', oldString: '', newString: 'y' }, [{ path: '/a' }]],
  ['edit', { path: '/a', edits: [{ oldText: 3 }] }, [{ path: '/a' }]],
  ['Write', { file_path: '/a', content: 'x' }, [{ path: '/a' }]],
  ['apply_patch', { input: PATCH }, [{ path: 'a.ts', oldTexts: ['x\ny', 'last'] }, { path: 'c.ts' }, { path: 'd.ts' }]],
  ['Read', { file_path: '/a' }, []],
  ['Bash', { command: 'rm a' }, []],
])('the change that %s %j would make', (name, args, changes) => {
  expect(changesOf(name, args)).toEqual(changes)
})

describe('hostArguments', () => {
  test.each([
    ['Write', { file_path: '/w/a', content: 'long' }, { path: 'a', content: '[marker]' }, { file_path: '/w/a', content: '[marker]' }],
    ['Edit', { file_path: '/w/a', old_string: 'x', new_string: 'y', replace_all: true }, { path: 'a', oldText: 'x', newText: '[m]', replace_all: true }, { file_path: '/w/a', old_string: 'x', new_string: '[m]', replace_all: true }],
    ['MultiEdit', { file_path: '/a', edits: [{ old_string: 'x', new_string: 'y' }] }, { path: '/a', edits: [{ oldText: '[m]', newText: 'y' }] }, { file_path: '/a', edits: [{ old_string: '[m]', new_string: 'y' }] }],
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

test.each([
  ['1\tone\n2\ttwo\n3\t', 'one\ntwo\n'],
  ['     9→one\n    10→two', 'one\ntwo'],
  ['4: a\n5: b: c', 'a\nb: c'],
  ['1\tone\n\n<system-reminder>\nread carefully\n</system-reminder>\n', 'one'],
  ['1\tone\n3\ttwo', undefined],
  ['one\n2\ttwo', undefined],
  ['', undefined],
  ['<path>/p/a.txt</path>\n<type>file</type>\n<content>\n7: one\n8: \n\n(End of file - total 8 lines)\n</content>', 'one\n'],
  ['<file>\n00001| one\n00002| two\n</file>\n\n<system-reminder>x</system-reminder>', 'one\ntwo'],
  ['<path>/p</path>\n<type>directory</type>\n<entries>\na.txt\n</entries>', undefined],
  ['<content>\n1: one\n\n(half', undefined],
])('shownLines %j', (output, wanted) => {
  expect(shownLines(output)).toBe(wanted)
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
  expect(hostOfSession('01a20e93-fb24')).toBe('pi')
  expect(hostOfSession('constructor:x')).toBe('pi')
})
