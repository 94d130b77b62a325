/** Other extensions whose tools have our names: Pi starts, both work, and the user hears of it once. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { namesBeside, toolOf, TOOLS } from '../../extensions/tools.ts'
import { cleanUp, newestSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { command, handle, lines, openStore, put, sessionIdOf, setUp, TOOLS_AT_ONCE } from './support.ts'

afterEach(cleanUp)

/** Another extension with a tool `pin`. */
const OTHER = `export default (pi) => pi.registerTool({
  name: 'pin', label: 'pin', description: 'Pins a note to the board.',
  parameters: { type: 'object', properties: { note: { type: 'string' } }, required: ['note'] },
  async execute(_id, { note }) { return { content: [{ type: 'text', text: 'on the board: ' + note }], details: undefined } },
})`

describe.each(['before', 'after'])('an extension with a tool called pin, loaded %s ours', (order) => {
  test('keeps its tool, and ours have other names', async () => {
    const { server, home, store, load } = await setUp(
      (_request, n) => {
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'], ['pin', { note: 'buy milk' }, 'call_note'])
        if (n === 5) return calls(['context_activate', { id: handle('call_a') }, 'call_back'])
        return `answer ${n}.`
      },
      { context: TOOLS_AT_ONCE },
    )
    put(home, 'a.txt', lines('a', 60))
    const other = join(home.root, 'other.ts')
    writeFileSync(other, OTHER)
    const rpc = await startRpc({ ...load, extension: order === 'before' ? [other, load.extension] : [load.extension, other] })
    for (const prompt of ['one', 'two', 'three', 'four']) await rpc.prompt(prompt)
    await command(rpc, '/context roll')
    await rpc.prompt('five')
    const told = rpc.events.filter((event) => JSON.stringify(event).includes('Another extension has a tool with a name of ours'))
    expect(told).toHaveLength(1)
    const last = server.requests.at(-1)!
    expect(last.tools.filter((name) => toolOf(name) !== undefined)).toEqual(expect.arrayContaining(['pin', ...TOOLS.map((name) => `context_${name}`)]))
    const results = resultsById(last)
    expect(results.get('call_note')).toContain('on the board: buy milk')
    expect(results.get('call_back')).toContain('a line 30:')
    await rpc.close()
    const manager = await openStore(store, sessionIdOf(newestSession(home.sessionsDir)!), home.cwd)
    expect((await manager.get('call_back'))?.['tool']).toBe('activate')
    await manager.close()
  })
})

describe('names', () => {
  test.each<[string[], string]>([
    [[], 'pin'],
    [['read', 'todo'], 'pin'],
    [['pin'], 'context_pin'],
    [['search_context'], 'context_pin'],
  ])('beside %j, pin is called %s', (taken, name) => {
    const names = namesBeside(new Set(taken))
    expect(names.pin).toBe(name)
    for (const tool of TOOLS) expect(toolOf(names[tool])).toBe(tool)
    expect(Object.values(names).filter((one) => taken.includes(one))).toEqual([])
  })

  test.each(['read', 'context_', 'context_read', 'activate2', ''])('%j is not a tool of ours', (name) => expect(toolOf(name)).toBeUndefined())
})
