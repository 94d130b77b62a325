/** The help of every command, as a person reads it in a terminal of 80 columns. */
import { expect, test } from 'vitest'
import { loaded, overview } from '../../lib/cli/commands.ts'
import { cli } from '../replay/support.ts'

const HELPS = [['the program', overview()], ...Object.entries(await loaded()).map(([name, { help }]) => [name, help])] as [string, string][]

test.each(HELPS)('%s: fits 80 columns, has whole paragraphs, and names the exit codes', (_name, help) => {
  const lines = help.split('\n')
  expect(lines.filter((line) => [...line].length > 80)).toEqual([])
  // A line that the next word would have fitted on is a broken paragraph.
  const broken = lines.filter((line, at) => {
    const [next = '', indent = ''] = [lines[at + 1], /^ */.exec(lines[at + 1] ?? '')?.[0]]
    const word = next.trim().split(' ')[0] ?? ''
    const goesOn = line !== '' && word !== '' && !word.startsWith('-') && (indent === '' ? !line.startsWith(' ') : indent.length === 24)
    return goesOn && !/[:;.)]$/.test(line) && line !== 'Exit codes' && [...line].length + 1 + [...word].length <= 72
  })
  expect(broken).toEqual([])
  expect(help).toMatch(/\n\nExit codes\n(?:  .+\n)*  (?:2 |\S).*$/)
})

test('every option of a command is in its help, and help and --help say the same', async () => {
  for (const [name, { help, options }] of Object.entries(await loaded())) {
    expect([name, Object.keys(options).filter((option) => !help.includes(`--${option}`))]).toEqual([name, []])
  }
  for (const args of [
    ['help', 'log'],
    ['log', '--help'],
    ['log', '-h'],
  ]) {
    expect(await cli(args)).toEqual({ code: 0, stdout: `${(await loaded())['log']!.help}\n`, stderr: '' })
  }
})
