/** A gateway that is killed at any moment: the client's retry goes through the next one with the same bytes. */
import { once } from 'node:events'
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { FORMS_FOLDER } from '../../lib/gateway/form-files.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, lasting, long, startProcess, upstream } from './support.ts'

afterEach(cleanUp)

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** A body's messages without cache markers. */
const plain = (body: any): string[] => body.messages.map((message: object) => JSON.stringify(message).replaceAll(',"cache_control":{"type":"ephemeral"}', ''))
const collapsed = (text: string): number => text.split('toolcall_ref id=').length - 1

describe('killed', () => {
  test.each(['before its answer', 'in the middle of its answer', 'after its answer'])(
    '%s: the retry has the same bytes, and later requests have the same prefix',
    async (moment) => {
      let fate: ((response: ServerResponse) => void) | undefined
      const { url, seen } = await upstream((_, response) => (fate === undefined ? response.end('{}') : fate(response)))
      const home = folder()
      const first = await startProcess(home, url)
      const loop = new AnthropicLoop(first)
      for (let n = 0; n < 40; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 300))
      const arrived = new Promise<void>((resolve) => {
        fate = (response) => {
          if (moment === 'after its answer') response.end('{}')
          else if (moment === 'in the middle of its answer') response.write('{"half":')
          resolve()
        }
      })
      const lost = loop.call('Bash', { command: 'cat last' }, long('last')).catch(() => undefined)
      await arrived
      if (moment === 'after its answer') await lost
      await killed(first.child)
      await lost
      fate = undefined
      const before = seen.at(-1)!.body.toString()
      expect(collapsed(before)).toBeGreaterThan(0)
      const second = await startProcess(home, url)
      const same = new AnthropicLoop(second)
      same.calls = loop.calls
      same.messages.push(...loop.messages)
      await same.send()
      expect(seen.at(-1)!.body.toString()).toBe(before)
      await same.call('Bash', { command: 'cat more' }, long('more'))
      const [held, next] = [before, seen.at(-1)!.body.toString()].map(
        (body) => (JSON.parse(body.replaceAll(',"cache_control":{"type":"ephemeral"}', '')) as { messages: unknown[] }).messages,
      )
      expect(next!.slice(0, held!.length)).toEqual(held)
    },
  )
})

/** A server that keeps the bodies of its requests. */
async function recording(): Promise<{ url: string; bodies: any[] }> {
  const bodies: any[] = []
  const { url } = await upstream(({ body }, response) => {
    bodies.push(JSON.parse(body.toString()))
    response.end('{}')
  })
  return { url, bodies }
}

/** Such a server, and loops on a model that binds its reasoning, each through its own gateway on one store. */
async function bound({ thinks = true, ...options }: Parameters<typeof gatewayTo>[1] & { thinks?: boolean } = {}): Promise<{
  bodies: any[]
  loop: (more?: object) => Promise<AnthropicLoop>
}> {
  const { url, bodies } = await recording()
  const place = lasting()
  const loop = async (more: object = {}): Promise<AnthropicLoop> => {
    const { gateway } = await gatewayTo(url, { ...place, ...options, ...more })
    return Object.assign(new AnthropicLoop(gateway), { model: 'claude-opus-5-5', more: { thinking: { type: 'adaptive' } }, thinks })
  }
  return { bodies, loop }
}

async function talk(loop: AnthropicLoop): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await loop.prompt(`prompt ${turn}`)
    for (let n = 0; n < 12; n += 1) await loop.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`))
  }
}

describe('a projection that does not come in time', () => {
  const run = async (options: { newProcess: boolean }): Promise<{ before: any; bodies: any[]; warnings: string[] }> => {
    const server = await startModelServer(() => 'ok')
    const place = lasting()
    const first = await gatewayTo(server.url, place)
    const loop = new AnthropicLoop(first.gateway)
    for (let n = 0; n < 30; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const before = server.requests.at(-1)!.body
    if (options.newProcess) await first.gateway.conversations.close()
    const { gateway, warnings } = await gatewayTo(server.url, { ...place, limitMs: 0 })
    const same = new AnthropicLoop(gateway)
    same.calls = 100
    same.messages.push(...loop.messages)
    for (let n = 0; n < 4; n += 1) await same.call('Bash', { command: `cat m${n}` }, long(`m${n}`))
    return { before, bodies: server.requests.slice(-4).map(({ body }) => body), warnings }
  }

  test('in a new process, the form of the old one goes out with the new messages, and with no more markers than the client set', async () => {
    const { before, bodies, warnings } = await run({ newProcess: true })
    expect(collapsed(plain(before).join())).toBeGreaterThan(0)
    for (const [n, body] of bodies.entries()) {
      expect(plain(body).slice(0, plain(before).length)).toEqual(plain(before))
      expect(plain(body).length).toBe(plain(before).length + 2 * (n + 1))
      expect(JSON.stringify(body).split('cache_control').length - 1).toBe(1)
    }
    expect(warnings.length).toBe(1)
  })
})

describe('a roll that comes too late for its request', () => {
  const run = async (how: Partial<AnthropicLoop>): Promise<{ sent: string[][]; turn: number }> => {
    const { url, bodies } = await recording()
    const { gateway } = await gatewayTo(url, { limitMs: 1_000 })
    const loop = new AnthropicLoop(gateway)
    Object.assign(loop, how)
    await loop.prompt('begin')
    const { projection } = await gateway.conversations.all[0]!.session()
    const transform = projection.transform.bind(projection)
    let letGo = (): void => {}
    let isLate = false
    projection.transform = async (messages) => {
      const [rolls] = [gateway.ledger.sessions[0]!.rolls.length]
      const form = await transform(messages)
      if (!isLate && gateway.ledger.sessions[0]!.rolls.length > rolls) {
        isLate = true
        await new Promise<void>((resolve) => (letGo = resolve))
      }
      return form
    }
    for (let turn = 0; !isLate && turn < 12; turn += 1) {
      for (let n = 0; !isLate && n < 7; n += 1) await loop.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`, 430))
      if (!isLate) await loop.prompt(`prompt ${turn}`)
    }
    expect(isLate).toBe(true)
    const from = bodies.length - 1
    expect(collapsed(plain(bodies[from]).join())).toBe(0)
    letGo()
    loop.calls = 1000
    // The turn continues with calls.
    if (loop.messages.at(-1).role === 'assistant') loop.messages.pop()
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat x${n}` }, 'short')
    const turn = bodies.length - from
    await loop.prompt('the next turn')
    await loop.call('Bash', { command: 'cat y' }, 'short')
    return { sent: bodies.slice(from).map(plain), turn }
  }
  const isKept = (before: string[], after: string[]): boolean => before.every((message, at) => after[at] === message)

  test('is in the next one where nothing is bound to earlier messages', async () => {
    const { sent } = await run({ model: 'claude-sonnet-4-5' })
    expect(collapsed(sent[1]!.join())).toBeGreaterThan(0)
  })

  test('waits for the next turn of the user where the reasoning of this one is bound to earlier messages', async () => {
    const { sent, turn } = await run({ model: 'claude-opus-5-5', thinks: true, more: { thinking: { type: 'adaptive' } } })
    for (let n = 1; n < turn; n += 1) expect(isKept(sent[n - 1]!, sent[n]!)).toBe(true)
    expect(collapsed(sent[turn]!.join())).toBeGreaterThan(0)
    for (let n = turn + 1; n < sent.length; n += 1) expect(isKept(sent[n - 1]!, sent[n]!)).toBe(true)
  })
})

describe('an edited conversation on a model that binds its reasoning', () => {
  const drops = { prefix_mismatch_behavior: 'drop_block' }

  test('asks for drops in every later request: where nothing is edited any more, late, and in a new process', async () => {
    const { bodies, loop: start } = await bound({ thinks: false })
    const loop = await start()
    await talk(loop)
    expect(collapsed(JSON.stringify(bodies.at(-1)))).toBeGreaterThan(0)
    const firstEdited = bodies.findIndex((body) => collapsed(JSON.stringify(body)) > 0)
    expect(bodies.slice(firstEdited).map(({ thinking }) => thinking.block_binding)).toEqual(bodies.slice(firstEdited).map(() => drops))
    const late = await start({ limitMs: 0 })
    late.messages.push(...loop.messages)
    await late.send()
    expect(bodies.at(-1).thinking.block_binding).toEqual(drops)
    late.calls = 1000
    await late.call('Bash', { command: 'true' }, 'x')
    expect(bodies.at(-1).thinking.block_binding).toEqual(drops)
  })
})

describe('a conversation that follows an edited one', () => {
  test('a rewind to less than half of it asks for drops, and brings nothing back', async () => {
    const { bodies, loop } = await bound()
    const one = await loop()
    await talk(one)
    const rolled = plain(bodies.at(-1))
    expect(collapsed(rolled.join())).toBeGreaterThan(0)
    one.messages.splice(50)
    const from = bodies.length
    await one.prompt('another way')
    for (let n = 0; n < 4; n += 1) await one.call('Bash', { command: `cat x${n}` }, long(`x${n}`))
    const same = rolled.findIndex((message, at) => plain(bodies.at(-1))[at] !== message)
    expect(collapsed(rolled.slice(0, same).join())).toBeGreaterThan(0)
    for (const body of bodies.slice(from)) expect(plain(body).slice(0, same)).toEqual(rolled.slice(0, same))
    expect(bodies.slice(from).map(({ thinking }) => thinking.block_binding)).toEqual(bodies.slice(from).map(() => ({ prefix_mismatch_behavior: 'drop_block' })))
  })

  test.each([false, true])('a prompt that is replaced after its roll brings nothing back; in a new process: %s', async (restarts) => {
    const place = lasting()
    const { bodies, loop } = await bound({ ...place, open: { store: place.store } })
    let one = await loop()
    const last = (): string => JSON.stringify(bodies.at(-1) ?? '')
    for (let turn = 0; turn < 16 && collapsed(last()) === 0; turn += 1) {
      for (let n = 0; n < 7; n += 1) await one.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`, 430))
      await one.prompt(`prompt ${turn}`)
    }
    const rolled = plain(bodies.at(-1))
    expect(collapsed(rolled.join())).toBeGreaterThan(0)
    one.messages.splice(-2)
    if (restarts) {
      const { messages } = one
      one = await loop()
      one.messages.push(...messages)
    }
    one.calls = 1000
    const from = bodies.length
    await one.prompt('another prompt')
    for (let n = 0; n < 5; n += 1) await one.call('Bash', { command: `cat x${n}` }, long(`x${n}`, 5))
    // It may roll again, but no output is restored.
    const whole = (messages: readonly string[]): string[] => [...messages.join().matchAll(/(t\d+n\d+) line 60 /g)].map(([, name]) => name!)
    for (const body of bodies.slice(from)) expect(whole(rolled)).toEqual(expect.arrayContaining(whole(plain(body))))
  })

  test('a holdout leaves it edited', async () => {
    const { bodies, loop } = await bound()
    const one = await loop()
    await talk(one)
    const held = await loop({ holdout: 1 })
    held.messages.push(...one.messages)
    await held.send()
    expect(collapsed(JSON.stringify(bodies.at(-1)))).toBeGreaterThan(0)
    const fresh = new AnthropicLoop({ url: held.url }, 'session-2')
    fresh.messages.push(...one.messages)
    await fresh.send()
    expect(collapsed(JSON.stringify(bodies.at(-1)))).toBe(0)
  })

  test('with redact, no form is on disk', async () => {
    const path = join(folder(), FORMS_FOLDER)
    const { loop } = await bound({ formsPath: path, open: { store: { kind: 'memory' }, stay: { weight: 0.3 }, redact: true } })
    await talk(await loop())
    expect(existsSync(path)).toBe(false)
  })
})

test('conversations of a host without ids each have their form again after a kill', async () => {
  const { url, seen } = await upstream((_, response) => response.end('{}'))
  const place = lasting()
  const first = await gatewayTo(url, place)
  const tools = ['bash', 'context_activate'].map((name) => ({ type: 'function', function: { name } }))
  const send = async (gateway: { url: string }, messages: object[]): Promise<string> => {
    await ask(`${gateway.url}/openai/v1/chat/completions`, { headers: JSON_TYPE, body: JSON.stringify({ model: 'm', tools, messages }) })
    return seen.at(-1)!.body.toString()
  }
  const system = { role: 'system', content: 'You are a test.' }
  const talks = ['a', 'b', 'c'].map((name) => ({ name, messages: [system, { role: 'user', content: name }] as object[], last: '' }))
  for (let n = 0; n < 20; n += 1) {
    for (const talk of talks) {
      const call = { id: `${talk.name}${n}`, type: 'function', function: { name: 'bash', arguments: `{"command": "cat ${n}", "id": 12345678901234567890}` } }
      talk.messages.push({ role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', tool_call_id: call.id, content: long(`${talk.name}${n}`) })
      talk.last = await send(first.gateway, talk.messages)
    }
  }
  // A new one that begins like them is its own.
  const fresh = [system, { role: 'user', content: 'd' }]
  // The first request could be a question on the side, the second tells.
  const inside = [system, { role: 'user', content: 'e' }]
  await send(first.gateway, inside)
  await send(first.gateway, [...inside, { role: 'assistant', content: 'yes' }, { role: 'user', content: 'f' }])
  expect([first.gateway.conversations.all.length, first.gateway.conversations.all.at(-1)!.wasEdited]).toEqual([4, false])
  await first.gateway.close()
  const second = await gatewayTo(url, place)
  expect((JSON.parse(await send(second.gateway, fresh)) as { messages: object[] }).messages).toEqual(fresh)
  expect(second.gateway.conversations.all.map(({ wasEdited, before }) => [wasEdited, before])).toEqual([[false, undefined]])
  for (const talk of talks) {
    expect(collapsed(talk.last)).toBeGreaterThan(0)
    expect(await send(second.gateway, talk.messages)).toBe(talk.last)
  }
})
