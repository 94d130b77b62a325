/** One name everywhere: what the model and Pi's screen show is what every command takes. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { shortened, shortName } from '../../lib/ui/names.ts'
import { nearest } from '../../lib/ui/suggest.ts'
import { queryOf } from '../../lib/cli/look.ts'
import { ContextManager } from '../../lib/index.ts'
import { cli } from '../replay/support.ts'
import { recall } from '../../lib/projection/recall.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../../rig/pi.ts'

afterEach(cleanUp)

const SESSIONS = ['0199c5a2-0000-7000-8000-000000000001', '0199c5a2-0000-7000-8000-000000000002', '0199ffff-1']

async function given(): Promise<{ store: string; handle: string; id: string }> {
  const folder = temporaryFolder('names-')
  const store = join(folder, 'context.db')
  let born: { handle: string; id: string } | undefined
  for (const sessionId of SESSIONS) {
    const manager = await ContextManager.open({ sessionId, cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
    await manager.appendTurn({ role: 'user', content: 'mend it' })
    born ??= await manager.receive({
      id: 'toolu_013mXqWzqWpTTTwZgfNvhpWm',
      tool: 'bash',
      args: { command: 'ls' },
      content: 'a pelican\nhttp retry budget\nbudget of a retry\n',
      status: 'ok',
    })
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    await manager.indexFile('a.txt')
    await manager.close()
  }
  return { store, ...born! }
}

test('the short name of the model is taken by show, log and forget, and shown by search', async () => {
  const { store, handle, id } = await given()
  expect(handle).toBe(shortName(id))
  expect(handle).toBe(createHash('sha256').update(id).digest('hex').slice(0, 8))
  for (const name of [handle, handle.toUpperCase(), handle.slice(0, 4), id, id.slice(0, 9)]) {
    const { code, stdout } = await cli(['show', '--store', store, name])
    expect({ name, code, stdout }).toEqual({ name, code: 0, stdout: 'a pelican\nhttp retry budget\nbudget of a retry\n' })
  }
  const found = await cli(['search', '--store', store, 'pelican'])
  expect(found.stdout).toMatch(new RegExp(`^${handle}@\\d+ bash ls\n`))
  const [place] = /^\S+/.exec(found.stdout)!
  expect((await cli(['show', '--store', store, place])).code).toBe(0)
  expect((await cli(['log', '--store', store, '--no-patch', handle])).stdout).toMatch(new RegExp(`^${handle}@\\d+ `, 'm'))
  expect(await cli(['forget', '--store', store, '--id', handle.slice(0, 6)])).toMatchObject({ code: 0 })
  expect((await cli(['show', '--store', store, id])).code).toBe(1)
  expect((await cli(['forget', '--store', store, '--id', 'ffff'])).code).toBe(1)
})

test('sessions have the shortest name that is theirs alone, and are found by it', async () => {
  const { store } = await given()
  const { stdout } = await cli(['sessions', '--store', store])
  const shown = [...stdout.matchAll(/:\d\d {2}(\S+)/g)].map((match) => match[1])
  expect(shown.sort()).toEqual([...SESSIONS.slice(0, 2), '0199ffff'])
  const found = await cli(['search', '--store', store, '--session', '0199f', 'pelican'])
  expect(found).toEqual({ code: 1, stdout: '', stderr: '' })
  const several = await cli(['search', '--store', store, '--session', '0199c', 'pelican'])
  expect(several).toMatchObject({ code: 2, stderr: expect.stringMatching(/may be 0199c5a2\S+1, 0199c5a2\S+2; give more of it/) })
  expect([...shortened(['abcdefghij', 'abcdefghxy', 'zz']).values()]).toEqual(['abcdefghi', 'abcdefghx', 'zz'])
})

test('lines have one form in the library, the tool of the model and the command', async () => {
  const { store, handle, id } = await given()
  const manager = await ContextManager.open({ sessionId: SESSIONS[0]!, cwd: '/', store: { kind: 'sqlite', path: store }, watch: false })
  onCleanUp(() => manager.close())
  for (const lines of ['2-3', '2', ' 1 - 2 ']) {
    const { stdout } = await cli(['show', '--store', store, handle, '--lines', lines])
    expect((await manager.activate(id, { lines })).content).toBe(stdout.trimEnd())
    expect(await recall(manager, { id, lines, grep: '' })).toBe(stdout.trimEnd())
  }
  for (const lines of ['ten', '1:2', '-5', '1-2-3', '1.5', '99999999999']) {
    const sentence = `lines is a range such as "120-180", not ${JSON.stringify(lines)}`
    await expect(manager.activate(id, { lines })).rejects.toThrow(sentence)
    expect(await recall(manager, { id, lines })).toBe(sentence)
    expect((await cli(['show', '--store', store, handle, `--lines=${lines}`])).stderr).toContain(sentence)
  }
  expect(await recall(manager, { id, lines: '1', grep: 'x' })).toBe('give either lines or grep, not both')
})

test('a part of a text is found in time proportional to it, whatever the pattern', async () => {
  const { store, handle } = await given()
  const show = (...args: string[]) => cli(['show', '--store', store, handle, ...args])
  expect((await show('--lines', '2-9')).stdout).toBe('http retry budget\nbudget of a retry\n')
  expect((await show('--lines', '2')).stdout).toBe('http retry budget\n')
  expect((await show('--grep', 'retry$')).stdout).toBe('3: budget of a retry\n')
  expect(await show('--grep', '(a+)+$')).toEqual({ code: 1, stdout: '', stderr: '' })
  for (const args of [
    ['--grep', '(a)\\1'],
    ['--grep', '('],
    ['--lines', 'all'],
    ['--lines', '9-9'],
    ['--lines', '1', '--grep', 'a'],
  ]) {
    expect({ args, ...(await show(...args)) }).toEqual({ args, code: 2, stdout: '', stderr: expect.stringMatching(/^pi-context-manager: .+\n$/) })
  }
})

test('words inside quotation marks follow each other', async () => {
  const { store } = await given()
  const lines = async (query: string): Promise<string> => (await cli(['search', '--store', store, query])).stdout
  expect(await lines('"retry budget"')).toContain('2: http retry budget')
  expect(await lines('"budget retry"')).toBe('')
  expect(await lines('budget retry')).not.toBe('')
  expect(queryOf('a "b  c" d')).toBe('a b.c d')
})

test.each([['"'], ['""'], ['- ( !'], ['a "b'], ['']])('the query %j is refused', async (query) => {
  const { code, stdout, stderr } = await cli(['search', '--store', (await given()).store, query])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
})

test.each([
  ['serach', 'search'],
  ['sesions', 'sessions'],
  ['comp', 'completion'],
  ['--jsno', '--json'],
  ['x', undefined],
  ['publish', undefined],
])('%s may mean %s', (word, name) => {
  expect(nearest(word, ['search', 'sessions', 'show', 'completion', '--json', '--store'])).toBe(name)
})
