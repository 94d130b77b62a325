/** A fork that goes back before its own beginning continues in the form that was sent last, in its process and in a later host. */
import { afterEach, describe, expect, test } from 'vitest'
import { shapes } from './hosts/conversation.ts'
import { lines } from './hosts/processes.ts'
import { Host } from './hosts/restarted.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

describe.each(some(shapes, 2))('%s', (shape) => {
  async function conversation(): Promise<{ host: Host; sent: string[] }> {
    const host = new Host(shape)
    let sent: string[] = []
    for (let round = 0; round < 20; round += 1) {
      if (round === 16) host.wait()
      await host.send({ user: `prompt ${round}` })
      sent = await host.send({ calls: [{ id: `call_${round}`, name: 'bash', args: { command: `run ${round}` }, output: lines(`output ${round}`, 60) }] })
    }
    expect(sent.join('\n')).not.toContain('output 3 line 30')
    return { host, sent }
  }

  const FORKS: [string, (host: Host) => Promise<void>][] = [
    ['a fork', (host) => host.fork()],
    [
      'a fork in a later process',
      async (host) => {
        await host.fork()
        await host.send({ text: 'yes', calls: [] }, { user: 'in the fork' })
        await host.restart()
      },
    ],
    [
      'a fork of a fork',
      async (host) => {
        await host.fork()
        await host.send({ text: 'yes', calls: [] }, { user: 'in the fork' })
        await host.fork()
      },
    ],
  ]

  test.each(FORKS)('%s', async (_, begin) => {
    const { host, sent } = await conversation()
    await begin(host)
    await host.send({ text: 'yes', calls: [] }, { user: 'on' })
    host.steps.length = 30
    const now = await host.send({ user: 'another prompt' })
    const at = now.findIndex((message) => message.includes('another prompt'))
    expect(at).toBeGreaterThan(10)
    expect(now.slice(0, at)).toEqual(sent.slice(0, at))
    expect(now.join('\n')).not.toContain('output 3 line 30')
    // It continues from there, also in a further process.
    const then = await host.send({ text: 'yes', calls: [] }, { user: 'on' })
    await host.restart()
    expect((await host.send({ text: 'yes', calls: [] }, { user: 'and on' })).slice(0, then.length)).toEqual(then)
  })
})
