/**
 * A host that runs a new process for each prompt, and so a new gateway: it sends what it would send through one gateway, whatever
 * the host does to its own history between two processes.
 */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { WIRES } from '../../rig/wires.ts'
import { folder } from '../core/setup.ts'
import { gatewayTo, long, maskOf } from './support.ts'
import { AGENTS, doubled, sendIn } from './wire-agents.ts'

afterEach(cleanUp)

const PROMPTS = 7
const CALLS = 8

/** A host's change of its messages before a prompt. `last` is where those of the turn before it begin. */
type Change = (messages: readonly object[], last: number, prompt: number, said: (text: string) => object) => object[]

const CHANGES: Record<string, Change> = {
  nothing: (messages) => [...messages],
  'the first message': (messages, _, prompt, said) => [said(`prompt 0 on another day, ${prompt}`), ...messages.slice(1)],
  'the turn before': (messages, last) => messages.map((message, at) => (at < last ? message : doubled(message))),
  both: (messages, last, prompt, said) => CHANGES['the first message']!(CHANGES['the turn before']!(messages, last, prompt, said), last, prompt, said),
}

/** All requests of a conversation as they reach the provider, in one gateway or in one for each prompt. */
async function requests(name: string, change: Change, isEach: boolean): Promise<Buffer[]> {
  const agent = AGENTS[name]!
  const server = await startModelServer(() => 'ok')
  const home = folder()
  const { url } = server
  // With the product's own weight: a test's is so eager that text leaves anyway.
  const options = { open: { store: { kind: 'sqlite' as const, path: join(home, 'context.db') } }, formsPath: join(home, 'forms'), cwd: home }
  const start = async (): Promise<Gateway> => (await gatewayTo(url, options)).gateway
  let gateway = await start()
  let messages: object[] = []
  let last = 0
  const { said, called, returned, answered } = WIRES[agent.wire]
  const send = (): Promise<void> => sendIn(gateway, agent.wire, messages)
  for (let prompt = 0; prompt < PROMPTS; prompt += 1) {
    if (prompt > 0) {
      messages = change(messages, last, prompt, said)
      if (isEach) {
        await gateway.close()
        gateway = await start()
      }
    }
    last = messages.length
    messages.push(said(`prompt ${prompt}`))
    await send()
    for (let n = 0; n < CALLS; n += 1) {
      const file = `f${prompt}_${n}`
      messages.push(called(`call_${file}`, `cat ${file}`), returned(`call_${file}`, long(file, 150)))
      await send()
    }
    messages.push(answered(`that was ${prompt}`))
  }
  return server.requests.map(({ raw }) => raw)
}

/** A message in which Gemini CLI has put its own text in place of long outputs. */
function masked(message: object): object {
  return JSON.parse(JSON.stringify(message), (_, value: unknown) => (typeof value === 'string' && value.length > 4000 ? maskOf(value) : value)) as object
}

const lengths = async (name: string, change: Change, isEach: boolean): Promise<number[]> => (await requests(name, change, isEach)).map(({ length }) => length)

const sum = (all: readonly number[]): number => all.reduce((one, other) => one + other, 0)

describe.each(Object.keys(AGENTS))('%s with a process for each prompt', (name) => {
  const changes = Object.keys(CHANGES).filter((change) => name === 'Gemini CLI' || !['the turn before', 'both'].includes(change))
  test.each(changes)('sends what one process sends, if its host changes %s', async (change) => {
    const one = await lengths(name, CHANGES[change]!, false)
    const each = await lengths(name, CHANGES[change]!, true)
    // One gateway has learned how often the cache is lost, and so may roll at another prompt.
    expect(sum(each)).toBeLessThanOrEqual(1.02 * sum(one))
    if (change === 'nothing') return
    expect(each).toEqual(one)
    expect(each.some((length, at) => at > 0 && length < 0.7 * each[at - 1]!)).toBe(true)
  })

  test.each([false, true])('what has left does not come back as a text that its host has put in its place; a process for each prompt: %s', async (isEach) => {
    const change: Change = (messages, last) => messages.map((message, at) => (at < last ? masked(message) : message))
    const texts = (await requests(name, change, isEach)).map((raw) => raw.toString('utf8'))
    const references = texts.map((text) => text.split('toolcall_ref id=').length - 1)
    expect(texts.some((text) => text.includes('<tool_output_masked>'))).toBe(true)
    expect(references.at(-1)).toBeGreaterThan(0)
    expect(references).toEqual(references.toSorted((one, other) => one - other))
  })
})
