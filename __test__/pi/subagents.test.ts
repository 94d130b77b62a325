/**
 * Pi's own subagent extension, from its package: each subagent is a separate `pi`, which can restore the outputs that its prompt
 * names, and nothing else.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { EXTENSION } from '../../rig/extension.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { handle, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

/** The folder of the example in Pi's package. */
const SUBAGENT = ((): string => {
  for (let folder = findRuntime().cli; folder !== '/'; folder = join(folder, '..')) {
    const found = join(folder, 'examples', 'extensions', 'subagent', 'index.ts')
    if (existsSync(found)) return found
  }
  return ''
})()

/** The parent shows files and delegates; a child reads each name of its prompt, then the others that it guesses. */
function script(request: ModelRequest): Answer {
  const { messages, n } = request
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(show|one|two|Task: child) /.test(text))
  const [verb, ...words] = messages[at]!.text.replace('Task: ', '').split(' ')
  const word = words[messages.slice(at + 1).filter(({ role }) => role === 'assistant').length]
  if (word === undefined) return `done ${n}`
  if (verb === 'show') return calls(['bash', { command: `cat ${word}.txt` }, `call_${word}`])
  if (verb === 'child') return calls(['read', { path: word.startsWith('id=') ? word : `id=${word}` }, `call_${n}`])
  if (messages.length > at + 1) return `done ${n}`
  const task = (names: readonly string[]) => ({ agent: 'worker', task: `child ${names.join(' ')}` })
  return calls(['subagent', verb === 'one' ? task(words) : { tasks: words.map((one) => task(one.split('+'))) }, `call_${n}`])
}

/** Returns the outputs of each child's reads, without their header lines, by the child's prompt. */
function reads(requests: readonly ModelRequest[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { messages } of requests) {
    const task = messages.find(({ role, text }) => role === 'user' && text.startsWith('Task: child'))
    if (task !== undefined)
      found.set(
        task.text,
        messages.flatMap(({ results }) => results.map(({ text }) => text.replace(/^id=\S+\n/, ''))),
      )
  }
  return found
}

test.skipIf(SUBAGENT === '')('a subagent has the outputs that its prompt names, and nothing else of its parent', { timeout: 300_000 }, async () => {
  const setting = await setUp(script, { settings: { extensions: [EXTENSION] } })
  const { server, home, load } = setting
  mkdirSync(join(home.agentDir, 'agents'))
  writeFileSync(join(home.agentDir, 'agents', 'worker.md'), '---\nname: worker\ndescription: Works\n---\nYou work.\n')
  for (const name of ['a', 'b', 'c']) put(home, `${name}.txt`, lines(name, 60))
  const [a, b, c] = ['call_a', 'call_b', 'call_c'].map(handle) as [string, string, string]
  const before = new Set(readdirSync(tmpdir()))
  const pi = await startRpc({ ...load, extension: [load.extension, SUBAGENT], timeoutMs: 120_000 })
  for (const name of ['a', 'b', 'c']) await pi.prompt(`show ${name}`)

  // It is handed a, and guesses b, which its parent has.
  await pi.prompt(`one id=${a} ${b}`)
  const first = reads(server.requests).get(`Task: child id=${a} ${b}`)!
  expect(first).toEqual([lines('a', 60), expect.stringContaining(`no object of this session has the id ${b}`)])
  const told = server.requests.findLast(({ messages }) => messages.some(({ text }) => text.startsWith('Task: child')))!
  expect(told.messages.map(({ text }) => text).join('\n')).toContain(`Handed over with this task, whole: id=${a}. read with path "id=${a}" shows it.`)

  // Two at once: what is laid out for one is not the other's.
  await pi.prompt(`two id=${b}+${c} id=${c}+${b}`)
  const found = reads(server.requests)
  const missing = (name: string) => expect.stringContaining(`no object of this session has the id ${name}`)
  expect(found.get(`Task: child id=${b} ${c}`)).toEqual([lines('b', 60), missing(c)])
  expect(found.get(`Task: child id=${c} ${b}`)).toEqual([lines('c', 60), missing(b)])
  expect(pi.process.stderr).not.toContain('Context manager')

  // Only the user can read the files for subagents, and they are removed with the parent.
  const laid = readdirSync(tmpdir()).filter((name) => name.startsWith('pi-context-') && !before.has(name))
  const holding = laid.filter((name) => existsSync(join(tmpdir(), name, a)))
  expect(holding).toHaveLength(1)
  expect(readFileSync(join(tmpdir(), holding[0]!, a), 'utf8')).toContain('a line 60')
  await pi.close()
  expect(existsSync(join(tmpdir(), holding[0]!))).toBe(false)
})
