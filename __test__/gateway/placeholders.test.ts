/** Texts that hosts write in place of outputs: neither outputs nor versions of files. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { placeholderOf } from '../../lib/tools/index.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, callTool, long, looping, numbered } from './support.ts'

afterEach(cleanUp)

const corpus = JSON.parse(readFileSync(new URL('../../fixtures/golden/placeholders.json', import.meta.url), 'utf8')) as {
  cleared: Record<string, string[]>
  unchanged: Record<string, string[]>
  none: string[]
}

describe('the words of each host', () => {
  for (const kind of ['cleared', 'unchanged'] as const) {
    const texts = Object.entries(corpus[kind]).flatMap(([host, all]) => all.map((text) => [host, text] as const))
    test.each(texts)(`${kind}: %s, %j`, (_, text) => {
      expect(placeholderOf(text)).toBe(kind)
    })
  }

  test.each(corpus.none)('not %j', (text) => {
    expect(placeholderOf(text)).toBeUndefined()
  })

  test('a long text is an output', () => {
    expect(placeholderOf(`<tool_output_masked>\n${'x'.repeat(30_000)}\n</tool_output_masked>`)).toBeUndefined()
  })
})

interface Reading {
  server: ModelServer
  gateway: Gateway
  loop: AnthropicLoop
  path: string
  sent: () => string
}

/** A conversation that has read a file once. */
async function reading(lines = 120): Promise<Reading> {
  const cwd = folder()
  const { server, gateway, loop } = await looping({ cwd })
  const path = join(cwd, 'a.txt')
  writeFileSync(path, `${long('a', lines)}\n`)
  await loop.prompt('start')
  await loop.call('Read', { file_path: path }, numbered(long('a', lines)))
  return {
    server,
    gateway,
    loop,
    path,
    sent: () =>
      server.requests
        .at(-1)!
        .messages.map(({ json }) => json)
        .join('\n'),
  }
}

const UNCHANGED = Object.values(corpus.unchanged).flat()

describe('a read that the host answers itself', () => {
  test.each(UNCHANGED)('does not count as a version of the file: %j', async (sentence) => {
    const { server, gateway, loop, path, sent } = await reading(12)
    const { manager } = await gateway.conversations.all[0]!.session()
    const before = (await manager.sessionSets()).sessionIndex
    for (let n = 0; n < 3; n += 1) {
      await loop.call('Read', { file_path: path }, sentence)
      await loop.prompt(`next ${n}`)
    }
    expect(sent()).not.toContain('stale id=')
    expect((await manager.sessionSets()).sessionIndex).toEqual(before)
    // A real change is reported.
    writeFileSync(path, `${long('a', 6)}\nby another program\n${long('a', 6)}\n`)
    for (let n = 0; n < 20 && !sent().includes('stale id='); n += 1) await loop.prompt(`again ${n}`)
    expect(sent()).toContain('stale id=')
    expect(server.problems).toEqual([])
  })

  test('names the earlier result by its reference once that has collapsed, and in the same bytes from then on', async () => {
    const { server, gateway, loop, path, sent } = await reading()
    const sentence = UNCHANGED[0]!
    const id = await loop.call('Read', { file_path: path }, sentence)
    const pointer = (): string =>
      server.requests
        .at(-1)!
        .messages.flatMap(({ results }) => results)
        .find((one) => one.id === id)!.text
    expect(pointer()).toBe(sentence)
    for (let n = 0; n < 40 && !/toolcall_ref id=\S+ tool=read/.test(sent()); n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const handle = /^It has collapsed: toolcall_ref id=(\S+) tool=read/m.exec(pointer())?.[1]
    expect(pointer().startsWith(`${sentence}\n`)).toBe(true)
    expect(await callTool(gateway, 'activate', { id: handle })).toContain('a line 7 ')
    const first = pointer()
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: 'true' }, 'x')
    expect(pointer()).toBe(first)
    // One that comes after it has collapsed says so at once.
    await loop.call('Read', { file_path: path }, sentence)
    expect(
      server.requests
        .at(-1)!
        .messages.flatMap(({ results }) => results)
        .at(-1)!.text,
    ).toBe(first)
    expect(server.problems).toEqual([])
  })

  test('with an unread file keeps the words of the host', async () => {
    const { loop, sent, server } = await reading()
    await loop.call('Read', { file_path: '/nowhere/b.txt' }, UNCHANGED[1]!)
    expect(sent()).toContain(UNCHANGED[1]!)
    expect(server.problems).toEqual([])
  })
})
