/** The calls and outputs of each agent (`fixtures/tools`) across the border, and back under the agent's names. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { changesOf, engineCall, engineCalls, hostArguments, outputAlone, shownLines } from '../../lib/tools/index.ts'
import type { Fields } from '../../lib/core/index.ts'

interface Corpus {
  agent: string
  calls: { tool: string; args: Fields; is?: { tool: string; args?: Fields }; changes?: object[]; oneWay?: true }[]
  outputs: { output: string; lines?: string; alone?: string }[]
}

const folder = new URL('../../fixtures/tools/', import.meta.url)
const corpora = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Corpus)

describe.each(corpora.map((corpus) => [corpus.agent, corpus] as const))('%s', (_, { calls, outputs }) => {
  test('calls have the names of the engine', () => {
    const found = engineCalls(calls.map(({ tool, args }) => ({ name: tool, args })))
    expect(found).toEqual(calls.map(({ tool, args, is }) => ({ tool, args, ...is })))
  })

  test('arguments come back under the names of the agent, with nothing but the edit changed', () => {
    for (const { tool, args, oneWay } of calls) {
      if (oneWay) continue
      const { args: own } = engineCall(tool, args)
      expect(JSON.stringify(hostArguments(tool, args, own))).toBe(JSON.stringify(args))
      const field = ['content', 'newText', 'command'].find((name) => typeof own[name] === 'string')
      if (field === undefined) continue
      const edited = JSON.stringify(hostArguments(tool, args, { ...own, [field]: '[marker]' }))
      expect(edited).toContain('[marker]')
      expect(Object.keys(JSON.parse(edited) as object)).toEqual(Object.keys(args))
    }
  })

  test('changes are known before they are made', () => {
    for (const { tool, args, changes = [] } of calls) expect(changesOf(tool, args)).toEqual(changes)
  })

  test('outputs are understood', () => {
    for (const { output, lines, alone } of outputs) {
      expect(shownLines(output)).toBe(lines ?? undefined)
      expect(outputAlone(output)).toBe(alone ?? output)
    }
  })
})

test('each agent that the gateway starts has its calls here', () => {
  const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8')
  const table = page
    .split('\n## What is set\n')[1]!
    .split(/\n##+ /)[0]!
    .split('\n')
    .filter((line) => line.startsWith('| '))
  const programs = table
    .slice(1)
    .map((line) =>
      line
        .split('|')[1]!
        .trim()
        .replace(/(?:,|'s CLI).*$/, ''),
    )
    .filter((name) => name !== 'others')
  const agents = corpora.map(({ agent }) => agent)
  expect(programs.length).toBeGreaterThan(6)
  expect(programs.filter((name) => !agents.includes(name))).toEqual([])
})
