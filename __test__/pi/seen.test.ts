/** `/context seen` and `inspect --call -1`: what the model sees in place of what Pi wrote. */
import { afterEach, expect, test } from 'vitest'
import { cli } from '../replay/support.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { command, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

test('before and after a roll, in Pi and from the session file', async () => {
  const { home, load } = await setUp((_request, n) => (n % 2 === 0 && n < 8 ? calls(['read', { path: `f${n}.txt` }, `call_${n}`]) : 'fine.'))
  for (let n = 0; n < 8; n += 2) put(home, `f${n}.txt`, lines(`f${n}`, 300))
  const rpc = await startRpc(load)
  for (const prompt of ['one', 'two', 'three', 'four', 'five', 'six']) await rpc.prompt(`${prompt} ${lines(prompt, 60)}`)
  const shown = async (): Promise<string> => (await command(rpc, '/context seen'))[0] ?? ''
  expect(await shown()).toMatch(/^The model gets what the agent wrote: \d+ parts are unchanged\.$/)
  await command(rpc, '/context roll')
  const rolled = await shown()
  expect(rolled.replaceAll(/\s+/g, ' ')).toMatch(/^The model gets [\d.]+k? tokens in place of the agent's [\d.]+k? \(estimated\)/)
  expect(rolled).toMatch(/\n(?:replaced|removed) +(?:call and )?output of read f0\.txt +[\d.]+k? -> \d+\n {10}\S/)
  for (const line of rolled.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  await rpc.prompt('seven')
  const { sessionFile } = await rpc.state()
  await rpc.close()
  const { stdout, code } = await cli(['inspect', '--pi-session', sessionFile, '--call', '-1'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Call \d+ of \d+, counted from 0: /)
  expect(stdout).toMatch(/\n(?:replaced|removed) +(?:call and )?output of read f0\.txt +[\d.]+k? -> \d+\n/)
  const last = Number(/^Call (\d+)/.exec(stdout)?.[1])
  expect((await cli(['inspect', '--pi-session', sessionFile, '--call', String(last), '--changes'])).stdout).toBe(stdout)
  const [whole, same] = await Promise.all([
    cli(['inspect', '--pi-session', sessionFile, '--call=-1', '--json']),
    cli(['inspect', '--pi-session', sessionFile, '--call', String(last)]),
  ])
  expect(JSON.parse(whole.stdout)).toEqual(JSON.parse(same.stdout))
  expect(await cli(['inspect', '--pi-session', sessionFile, '--call', '-99'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('call -99 does not exist'),
  })
})
