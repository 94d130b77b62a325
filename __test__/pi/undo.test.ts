/** `/context undo` in the real Pi: the model sees again the text from before the roll, and each roll is undone once. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, readSession, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { command, lines, openStore, referring, sessionIdOf, setUp, TOOLS_AT_ONCE, put } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))

/** A large output, shown to the model as an excerpt, and a short file. Both are stale after four prompts. */
async function afterFour(): Promise<Setting & { rpc: PiRpc }> {
  const setting = await setUp(
    (_request, n) => (n === 0 ? calls(['bash', { command: 'cat big.txt' }, 'call_big'], ['read', { path: 'a.txt' }, 'call_a']) : lines(`answer ${n}`, 300)),
    { context: TOOLS_AT_ONCE },
  )
  put(setting.home, 'big.txt', lines('big', 3000))
  put(setting.home, 'a.txt', lines('a', 60))
  const rpc = await startRpc({ ...setting.load, extension: [setting.load.extension, NAVIGATE] })
  for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
  return { ...setting, rpc }
}

/** Returns the savings by the points of a session, oldest first. */
function savings(file: string): number[] {
  return readSession(file).entries.flatMap((entry) =>
    entry.type === 'custom' && entry['customType'] === 'pi-context-manager' ? [(entry['data'] as { saved?: number }).saved ?? 0] : [],
  )
}

test('receipts are whole numbers', async () => {
  const { rpc, store, home } = await afterFour()
  await command(rpc, '/context roll')
  const { sessionFile } = await rpc.state()
  await rpc.close()
  const [receipt] = await (await openStore(store, sessionIdOf(sessionFile), home.cwd)).receipts()
  const { reason: _, ...figures } = receipt!
  expect(Object.keys(figures)).toEqual(expect.arrayContaining(['items', 'removedTokens', 'cost', 'gain']))
  for (const figure of Object.entries(figures)) expect(figure).toEqual([figure[0], Math.round(figure[1] as number)])
})

test.each(['the process that rolled', 'a resumed session'])('an excerpt is restored as an excerpt, once: %s', async (where) => {
  const setting = await afterFour()
  const { server, load } = setting
  let { rpc } = setting
  if (where === 'a resumed session') {
    await rpc.close()
    rpc = await startRpc({ ...load, args: ['--continue'] })
  }
  const before = resultsById(server.agentRequests.at(-1)!)
  expect(before.get('call_big')).toContain('left out')
  expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled: 2 items/)
  await rpc.prompt('five')
  expect(resultsById(server.agentRequests.at(-1)!).get('call_big')).toMatch(referring('call_big', 'bash'))
  expect(await command(rpc, '/context undo')).toEqual(['Undone: 2 messages are shown as they were before the roll.'])
  expect(await command(rpc, '/context undo')).toEqual(['There is no roll to undo.'])
  await rpc.prompt('six')
  expect(resultsById(server.agentRequests.at(-1)!)).toEqual(before)
  await rpc.close()
})

test('without a roll to undo, the savings of earlier rolls still count', async () => {
  const { rpc: first, load } = await afterFour()
  await command(first, '/context roll')
  await first.prompt('five')
  const { sessionFile } = await first.state()
  await first.close()
  const saved = savings(sessionFile)
  // Until the next call was answered, the roll has changed nothing.
  expect(saved.at(-2)).toBe(saved.at(-3))
  expect(saved.at(-1)).not.toBe(saved.at(-2))

  const rpc = await startRpc({ ...load, args: ['--continue'] })
  expect(await command(rpc, '/context undo')).toEqual(['There is no roll to undo.'])
  await rpc.prompt('six')
  await rpc.close()
  expect(savings(sessionFile).at(-1)).toBeGreaterThan(saved.at(-1)!)
})

/** The outputs that `/context` lists. Their sizes follow Pi's own figure for the window. */
const listed = async (rpc: PiRpc): Promise<string> =>
  /^Outputs: [^]*?(?=^(?:Stale|Store):)/m.exec((await command(rpc, '/context'))[0]!)![0].replaceAll(/[\d.]+k? tokens/g, 'tokens')
/** Returns the cost and the saving in `/context`. The size of the window is Pi's own figure. */
const totals = async (rpc: PiRpc): Promise<string[]> =>
  (await command(rpc, '/context'))[0]!.split('\n').filter((line) => /^(Saved|Nothing saved|Billed|Cost)/.test(line))

/** Ways back to a place where nothing was rolled. */
const WAYS: [name: string, back: (rpc: PiRpc, leaf: string) => Promise<unknown>][] = [
  ['an undo', (rpc) => command(rpc, '/context undo')],
  ['a step back in the tree', (rpc, leaf) => command(rpc, `/goto ${leaf}`)],
]

test.each(WAYS)('after a roll and %s the list is as before, and the totals are those of the last call', async (name, back) => {
  const { rpc } = await afterFour()
  const { leafId } = await rpc.command({ type: 'get_entries' })
  const [list, sums] = [await listed(rpc), await totals(rpc)]
  await command(rpc, '/context roll')
  expect(await totals(rpc)).toEqual(sums)
  expect(await listed(rpc)).not.toBe(list)
  await back(rpc, leafId)
  expect(await totals(rpc)).toEqual(sums)
  // An undone roll stays undone for some turns, also if the user asks for a roll.
  const untaken = (text: string): string => text.replaceAll(', may collapse', '').replace(/^\/context roll collapses now.*\n/m, '')
  expect(await listed(rpc)).toBe(name === 'an undo' ? untaken(list) : list)
  await rpc.close()
})

test('an output that is hardly longer than its reference is not said to collapse', async () => {
  const setting = await setUp((_request, n) =>
    n === 0 ? calls(['bash', { command: 'cat s.txt' }, 'call_s'], ['read', { path: 'a.txt' }, 'call_a']) : `answer ${n}`,
  )
  put(setting.home, 's.txt', 'twenty and six characters\ntwenty and six characters')
  put(setting.home, 'a.txt', lines('a', 60))
  const rpc = await startRpc(setting.load)
  for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
  expect(await listed(rpc)).toMatch(/cat s\.txt {2}full, tokens/)
  expect(await listed(rpc)).toMatch(/a\.txt {2}full, may collapse/)
  expect(await command(rpc, '/context roll')).toContainEqual(expect.stringMatching(/^Rolled: 1 item/))
  setting.server.check()
})

test('a roll that pays back late asks first, and names its cost', async () => {
  const asked: string[] = []
  let yes = false
  const { rpc: first, server, load } = await afterFour()
  await first.close()
  const rpc = await startRpc({
    ...load,
    args: ['--continue'],
    dialog: ({ message }) => {
      asked.push(String(message))
      return { confirmed: yes }
    },
  })
  expect(await command(rpc, '/context roll')).toEqual(['Nothing was rolled.'])
  expect(asked).toEqual([expect.stringMatching(/^This roll: 2 items, .* removed, cost [\d.]+k input tokens, pays back in \d+ calls\. Roll anyway\?$/)])
  await rpc.prompt('five')
  expect(resultsById(server.agentRequests.at(-1)!).get('call_a')).toContain('a line 30:')
  yes = true
  expect(await command(rpc, '/context roll')).toEqual([expect.stringMatching(/^Rolled: 2 items/)])
  await rpc.prompt('six')
  expect(resultsById(server.agentRequests.at(-1)!).get('call_a')).toMatch(referring('call_a', 'read'))
})
