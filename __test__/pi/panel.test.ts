/** `/context` in a terminal: what its keys do. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../rig/pi.ts'
import { calls } from '../rig/reply.ts'
import { KEYS, startTerminal } from '../rig/terminal.ts'
import { handle, lines, put, reference, setUp, TOOLS_AT_ONCE } from './support.ts'

afterEach(cleanUp)

test('an output that is brought back several times is sent once', async () => {
  const { server, home, load } = await setUp(
    (_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a']) : `answer ${n}.`),
    { context: TOOLS_AT_ONCE },
  )
  const text = lines('a', 60)
  put(home, 'a.txt', text)
  const terminal = await startTerminal(load)
  for (const [index, prompt] of ['one', 'two', 'three', 'four'].entries()) {
    await terminal.press(`${prompt}${KEYS.enter}`, new RegExp(`answer ${index + 1}\\.`))
  }
  await terminal.press(`/context roll${KEYS.enter}${KEYS.enter}`, /Rolled: 1 item/)
  await terminal.press(`/context${KEYS.enter}`, /bring back/)
  await terminal.press('b', new RegExp(`${handle('call_a')} goes to the model with your next message\\.`))
  await terminal.press('b', /with your next message already/)
  await terminal.press('b', /with your next message already/)
  await terminal.redraws('q')
  await terminal.press(`five${KEYS.enter}`, /answer 5\./)
  // It is in the conversation now, and does not come a second time.
  await terminal.press(`/context${KEYS.enter}`, /bring back/)
  await terminal.press('b', /was brought back already/)
  await terminal.redraws('q')
  await terminal.press(`six${KEYS.enter}`, /answer 6\./)
  expect(await terminal.close()).toEqual({ code: 0, signal: null })
  server.check()
  const last = server.requests.at(-1)!
  expect(last.messages.filter((message) => message.text.includes('a line 30:'))).toHaveLength(1)
  expect(JSON.stringify(last.messages.map((message) => message.text))).toContain(reference('call_a', 'read'))
})
