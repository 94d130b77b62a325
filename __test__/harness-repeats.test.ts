/** A conversation that is read again, after an edit of its past or in another process, goes out in the form that was sent last. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ShapeName } from '../lib/projection/harness.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { lines } from './hosts/processes.ts'
import { Host } from './hosts/restarted.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const call = (id: string, count = 60): Step => ({ calls: [{ id, name: 'bash', args: { command: `run ${id}` }, output: lines(id, count) }] })

/** A conversation of which most has collapsed. The outputs of its last call come last. */
async function collapsed(shape: ShapeName): Promise<{ host: Host; sent: string[] }> {
  const host = new Host(shape)
  for (let round = 0; round < 14; round += 1) {
    if (round === 12) host.wait()
    await host.send({ user: `prompt ${round}` })
    await host.send(call(`call_${round}`))
  }
  const sent = await host.send(call('last'))
  expect(sent.join('\n')).not.toContain('call_2 line 30')
  return { host, sent }
}

/** The number of messages that two requests have in common from the start. */
const common = (one: readonly string[], other: readonly string[]): number => one.findIndex((message, at) => message !== other[at])

describe.each(some(shapes, 2))('an edit of the past while results are last: %s', (shape) => {
  const last = (host: Host): number => host.steps.length - 1
  test.each<[string, (host: Host) => void]>([
    ['an output is changed', (host) => (host.steps[last(host)] = { calls: [{ id: 'last', name: 'bash', args: { command: 'run last' }, output: 'redacted' }] })],
    ['a prompt is changed', (host) => (host.steps[last(host) - 2] = { user: 'another prompt' })],
    ['a call is removed', (host) => host.steps.splice(last(host) - 1, 1)],
    ['a prompt is inserted', (host) => host.steps.splice(last(host) - 2, 0, { user: 'inserted' }, { text: 'yes', calls: [] })],
  ])('%s: what has collapsed before it stays so', async (_, edit) => {
    const { host, sent } = await collapsed(shape)
    edit(host)
    const now = await host.send()
    expect(now.join('\n')).not.toContain('call_2 line 30')
    // At most the last three steps follow the edit.
    const tail = host.steps.slice(-5).flatMap((step) => written[shape](step, 1)).length
    expect(common(sent, now)).toBeGreaterThanOrEqual(sent.length - tail)
    expect(await host.send(), 'the same again').toEqual(now)
  })
})

describe.each(some(shapes, 2))('a large output: %s', (shape) => {
  const isWhole = (sent: readonly string[]): boolean => sent.join('\n').includes('large line 500:')

  test.each(['a new process', 'an edit behind it', 'both'])('one that was sent whole stays whole: %s', async (what) => {
    const host = new Host(shape)
    host.canRecall = false
    await host.send({ user: 'begin' })
    const first = await host.send(call('large', 1_000))
    expect(isWhole(first)).toBe(true)
    host.canRecall = true
    const before = await host.send({ text: 'seen', calls: [] }, { user: 'on' })
    if (what !== 'an edit behind it') await host.restart()
    if (what === 'a new process') host.steps.push({ text: 'yes', calls: [] })
    else host.steps[host.steps.length - 1] = { user: 'changed' }
    const now = await host.send({ user: 'and on' })
    expect(isWhole(now)).toBe(true)
    expect(now.slice(0, first.length)).toEqual(before.slice(0, first.length))
  })

  test.each(['a new process', 'an edit behind it'])('one that was sent as an excerpt stays one: %s', async (what) => {
    const host = new Host(shape)
    await host.send({ user: 'begin' })
    // Some results can't be cut while they are last: then the user speaks in the same request.
    await host.send(call('large', 1_000), { text: 'seen', calls: [] }, { user: 'on' })
    const before = await host.send({ text: 'yes', calls: [] }, { user: 'on' })
    expect(isWhole(before)).toBe(false)
    if (what === 'a new process') await host.restart()
    else host.steps[host.steps.length - 1] = { user: 'changed' }
    const now = await host.send({ text: 'yes', calls: [] }, call('small', 3))
    expect(isWhole(now)).toBe(false)
    expect(common(before, now)).toBeOneOf([-1, before.length - 1])
  })
})
