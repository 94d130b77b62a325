/** Providers repeat call IDs, within an answer and from answer to answer: each result belongs to the call in its place. */
import { afterEach, describe, expect, test } from 'vitest'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const writes = (n: number) => ({ id: 'call_0', name: 'Write', args: { file_path: `/w/${n}`, content: `content ${n}` }, output: `wrote ${n}` })
const one = (n: number): Step => ({ calls: [writes(n)] })

/** The recorded calls, with what tells them apart. */
async function recorded(messages: object[]): Promise<string[]> {
  const manager = await opened({ cwd: folder(), watch: false })
  await manager.transformContext(messages)
  const calls = await manager.query({ type: 'toolcall' })
  return calls.map(({ tool, args, content }) => `${String(tool)} ${JSON.stringify(args)} ${String(content)}`)
}

const wrote = (n: number): string => `write {"content":"content ${n}","file_path":"/w/${n}"} wrote ${n}`

describe.each(shapes)('%s', (shape) => {
  const write = (...steps: Step[]): object[] => [{ user: 'begin' }, ...steps].flatMap((step, at) => written[shape](step, at))

  test('calls of one answer under one ID', async () => {
    expect(await recorded(write({ calls: [writes(1), writes(2), writes(3)] }))).toEqual([1, 2, 3].map(wrote))
  })

  test('calls of several answers that are handed over at once', async () => {
    expect(await recorded(write(one(1), one(2), { user: 'continue' }, one(3)))).toEqual([1, 2, 3].map(wrote))
  })

  test('two tools under one ID', async () => {
    const read = { id: 'call_0', name: 'read', args: { path: '/w/a' }, output: 'text' }
    const bash = { id: 'call_0', name: 'bash', args: { command: 'ls' }, output: 'a' }
    expect(await recorded(write({ calls: [read, bash] }))).toEqual(['read {"path":"/w/a"} text', 'bash {"command":"ls"} a'])
  })

  test.each(['bash', '__proto__', 'toString', 'activate_license'])('a call whose tool the host renames from %s to another is another call', async (name) => {
    const manager = await opened({ cwd: folder(), watch: false })
    const call = { id: 'call_0', name, args: { command: 'ls' }, output: 'a list of files' }
    const steps = (tool: string): Step[] => [{ calls: [{ ...call, name: tool }] }, { user: 'next' }, { calls: [{ ...call, output: 'another list' }] }]
    await manager.transformContext(write(...steps(name)))
    await manager.transformContext(write(...steps('renamed'), { text: 'done', calls: [] }))
    const all = await manager.query({ type: 'toolcall' })
    expect(all.map(({ tool, content }) => `${String(tool)}: ${String(content)}`)).toEqual([
      `${name}: a list of files`,
      `${name}: another list`,
      'renamed: a list of files',
    ])
  })
})
