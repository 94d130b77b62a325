/** A gateway that is killed at any moment: the client's retry goes through the next one with the same bytes. */
import { once } from 'node:events'
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { Forms, FORMS_FOLDER } from '../../lib/gateway/forms.ts'
import type { LastForm } from '../../lib/gateway/forms.ts'
import { folder } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, lasting, long, upstream } from './support.ts'

afterEach(cleanUp)

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

/** A gateway in a process of its own. */
async function startProcess(home: string, server: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [START, 'gateway', '--listen', '0', '--store', join(home, 'context.db'), '--anthropic', server], {
    env: { PATH: process.env['PATH'], HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onCleanUp(() => void child.kill('SIGKILL'))
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
      const found = /http:\/\/127\.0\.0\.1:\d+(?=\/anthropic)/.exec(said)?.[0]
      if (found !== undefined) resolve(`${found}/anthropic`)
    })
    child.once('exit', () => reject(new Error(`the gateway has ended: ${said}`)))
  })
  return { child, url }
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const collapsed = (text: string): number => text.split('toolcall_ref id=').length - 1

describe('killed', () => {
  test.each(['before its answer', 'in the middle of its answer', 'after its answer'])('%s: the retry has the same bytes, and what follows the same prefix', async (moment) => {
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
    const [held, next] = [before, seen.at(-1)!.body.toString()].map((body) => (JSON.parse(body.replaceAll(',"cache_control":{"type":"ephemeral"}', '')) as { messages: unknown[] }).messages)
    expect(next!.slice(0, held!.length)).toEqual(held)
  })
})

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
    const plain = (body: any): string[] => body.messages.map((message: object) => JSON.stringify(message).replaceAll(',"cache_control":{"type":"ephemeral"}', ''))
    expect(collapsed(plain(before).join())).toBeGreaterThan(0)
    for (const [n, body] of bodies.entries()) {
      expect(plain(body).slice(0, plain(before).length)).toEqual(plain(before))
      expect(plain(body).length).toBe(plain(before).length + 2 * (n + 1))
      expect(JSON.stringify(body).split('cache_control').length - 1).toBe(1)
    }
    expect(warnings.length).toBe(1)
  })
})

describe('an edited conversation on a model that binds its reasoning', () => {
  const drops = { prefix_mismatch_behavior: 'drop_block' }

  test('asks for drops in every later request: where nothing is edited any more, late, and in a new process', async () => {
    const bodies: any[] = []
    const { url } = await upstream(({ body }, response) => {
      bodies.push(JSON.parse(body.toString()))
      response.end('{}')
    })
    const place = lasting()
    const start = async (limitMs?: number): Promise<AnthropicLoop> => {
      const { gateway } = await gatewayTo(url, { ...place, ...(limitMs === undefined ? {} : { limitMs }) })
      const loop = new AnthropicLoop(gateway)
      loop.model = 'claude-opus-5-5'
      loop.more = { thinking: { type: 'adaptive' } }
      return loop
    }
    const loop = await start()
    for (let turn = 0; turn < 5; turn += 1) {
      await loop.prompt(`prompt ${turn}`)
      for (let n = 0; n < 12; n += 1) await loop.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`))
    }
    expect(collapsed(JSON.stringify(bodies.at(-1)))).toBeGreaterThan(0)
    const firstEdited = bodies.findIndex((body) => collapsed(JSON.stringify(body)) > 0)
    expect(bodies.slice(firstEdited).map(({ thinking }) => thinking.block_binding)).toEqual(bodies.slice(firstEdited).map(() => drops))
    const late = await start(0)
    late.messages.push(...loop.messages)
    await late.send()
    expect(bodies.at(-1).thinking.block_binding).toEqual(drops)
    late.calls = 1000
    await late.call('Bash', { command: 'true' }, 'x')
    expect(bodies.at(-1).thinking.block_binding).toEqual(drops)
  })
})

describe('what goes on from an edited conversation', () => {
  /** A server that records bodies, and loops on a model that binds its reasoning. */
  const start = async (options: object = {}): Promise<{ bodies: any[]; loop: (more?: object) => Promise<AnthropicLoop> }> => {
    const bodies: any[] = []
    const { url } = await upstream(({ body }, response) => {
      bodies.push(JSON.parse(body.toString()))
      response.end('{}')
    })
    const place = lasting()
    const loop = async (more: object = {}): Promise<AnthropicLoop> => {
      const { gateway } = await gatewayTo(url, { ...place, ...options, ...more })
      const one = new AnthropicLoop(gateway)
      one.model = 'claude-opus-5-5'
      one.more = { thinking: { type: 'adaptive' } }
      one.thinks = true
      return one
    }
    return { bodies, loop }
  }
  const talk = async (loop: AnthropicLoop): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) {
      await loop.prompt(`prompt ${turn}`)
      for (let n = 0; n < 12; n += 1) await loop.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`))
    }
  }

  test('a rewind to less than half of it asks for drops', async () => {
    const { bodies, loop } = await start()
    const one = await loop()
    await talk(one)
    expect(collapsed(JSON.stringify(bodies.at(-1)))).toBeGreaterThan(0)
    one.messages.splice(30)
    const from = bodies.length
    await one.prompt('another way')
    for (let n = 0; n < 4; n += 1) await one.call('Bash', { command: `cat x${n}` }, long(`x${n}`))
    expect(bodies.slice(from).map(({ thinking }) => thinking.block_binding)).toEqual(bodies.slice(from).map(() => ({ prefix_mismatch_behavior: 'drop_block' })))
  })

  test.each([false, true])('a prompt that is replaced after its roll brings nothing back; in a new process: %s', async (restarts) => {
    const place = lasting()
    const { bodies, loop } = await start({ ...place, open: { store: place.store } })
    let one = await loop()
    const last = (): string => JSON.stringify(bodies.at(-1) ?? '')
    for (let turn = 0; turn < 16 && collapsed(last()) === 0; turn += 1) {
      for (let n = 0; n < 7; n += 1) await one.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`, 430))
      await one.prompt(`prompt ${turn}`)
    }
    const plain = (body: any): string[] => body.messages.map((message: object) => JSON.stringify(message).replaceAll(',"cache_control":{"type":"ephemeral"}', ''))
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
    // It may roll again, but nothing comes back.
    const whole = (messages: readonly string[]): string[] => [...messages.join().matchAll(/(t\d+n\d+) line 60 /g)].map(([, name]) => name!)
    for (const body of bodies.slice(from)) expect(whole(rolled)).toEqual(expect.arrayContaining(whole(plain(body))))
  })

  test('a holdout leaves it edited', async () => {
    const { bodies, loop } = await start()
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
    const { loop } = await start({ formsPath: path, open: { store: { kind: 'memory' }, stay: { weight: 0.3 }, redact: true } })
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
  await first.gateway.close()
  const second = await gatewayTo(url, place)
  for (const talk of talks) {
    expect(collapsed(talk.last)).toBeGreaterThan(0)
    expect(await send(second.gateway, talk.messages)).toBe(talk.last)
  }
})

test('forget erases the forms, too', async () => {
  const { url } = await upstream((_, response) => response.end('{}'))
  const home = folder()
  const store = join(home, 'context.db')
  const { gateway } = await gatewayTo(url, { store: { kind: 'sqlite', path: store }, formsPath: join(home, FORMS_FOLDER) })
  const loop = new AnthropicLoop(gateway)
  for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  expect(readdirSync(join(home, FORMS_FOLDER)).length).toBe(1)
  await gateway.close()
  execFileSync(process.execPath, [START, 'forget', '--store', store, '--text', 'n3 line 7 of an output that is long enough to matter'])
  expect(readdirSync(home)).not.toContain(FORMS_FOLDER)
})

describe('forms', () => {
  const form = (items: LastForm['items'], atMs = 1): LastForm => ({ chain: ['', ...Array.from({ length: 200 }, (_, n) => `h${n}`), `at ${atMs}`], atMs, items, wasEdited: true })
  const named = { id: 'claude-code:s', cwd: '/tmp' }

  test('the last one comes back, from files that only the user can read', () => {
    const path = join(folder(), 'forms')
    const forms = new Forms(path)
    for (let n = 1; n < 200; n += 1) forms.note('key', named, form(Array.from({ length: n }, (_, at) => at), n))
    expect(new Forms(path).of('key')).toEqual([{ ...named, form: form(Array.from({ length: 199 }, (_, at) => at), 199) }])
    expect(new Forms(path).of('other')).toEqual([])
    const [file] = readdirSync(path)
    expect([statSync(path).mode & 0o777, statSync(join(path, file!)).mode & 0o777]).toEqual([0o700, 0o600])
    // What follows the same beginning is all that a request writes.
    expect(statSync(join(path, file!)).size).toBeLessThan(60_000)
  })

  test('a line that a kill has torn does not count', () => {
    const path = join(folder(), 'forms')
    const forms = new Forms(path)
    forms.note('key', named, form([0, 1], 1))
    forms.note('key', named, form([0, 1, 2], 2))
    const file = join(path, readdirSync(path)[0]!)
    const text = readFileSync(file, 'utf8')
    const lines = text.trimEnd().split('\n')
    const last = lines.pop()!
    for (let length = 0; length < last.length; length += 7) {
      writeFileSync(file, `${lines.join('\n')}\n${last.slice(0, length)}`)
      expect(new Forms(path).of('key')[0]!.form).toEqual(form([0, 1], 1))
    }
  })

  test.each(['"items":[7000]', '"items":[null]', '"items":[[1,null]]', '"items":[{"add":1}]', '"items":7'])('a form with %s does not count', (damage) => {
    const path = join(folder(), 'forms')
    new Forms(path).note('key', named, form([0, 1], 1))
    const file = join(path, readdirSync(path)[0]!)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace(/"items":\[0,1\]/, damage))
    expect(readFileSync(file, 'utf8')).not.toBe(text)
    expect(new Forms(path).of('key')).toEqual([])
  })

  test('a file that was erased while a gateway runs is written anew', () => {
    const path = join(folder(), 'forms')
    const forms = new Forms(path)
    forms.note('key', named, form([0, 1], 1))
    rmSync(path, { recursive: true })
    forms.note('key', named, form([0, 1, 2], 2))
    expect(new Forms(path).of('key')[0]!.form).toEqual(form([0, 1, 2], 2))
  })

  test('where a host gives no IDs, the latest conversations are remembered', () => {
    const path = join(folder(), 'forms')
    const forms = new Forms(path)
    for (let n = 0; n < 30; n += 1) forms.note('key', { id: `agent:${n}`, cwd: '/tmp' }, form([n], n))
    expect(new Set(forms.of('key').map(({ id }) => id))).toEqual(new Set(Array.from({ length: 20 }, (_, n) => `agent:${n + 10}`)))
    expect(new Forms(path).of('key').length).toBe(20)
  })

  test('what two gateways have written to one file is not joined', () => {
    const path = join(folder(), 'forms')
    const [one, other] = [new Forms(path), new Forms(path)]
    one.note('key', named, form([0, 1], 1))
    other.note('key', named, form([5], 2))
    one.note('key', named, form([0, 1, 2], 3))
    expect(new Forms(path).of('key')).toEqual([])
    other.note('key', named, form([7], 4))
    expect(new Forms(path).of('key')[0]!.form).toEqual(form([7], 4))
  })
})
