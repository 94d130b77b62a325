/** The projection without Pi: in pi-agent-core's Agent, and over bare arrays of messages; and how state and request relate. */
import { Agent } from '@earendil-works/pi-agent-core'
import type { AgentTool } from '@earendil-works/pi-agent-core'
import { createFauxCore, fauxAssistantMessage, fauxToolCall } from '@earendil-works/pi-ai'
import type { Message, TranscriptContext } from '@earendil-works/pi-ai'
import { Type } from 'typebox'
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ProjectionOptions } from '../lib/projection/harness.ts'
import type { ContextManager } from '../lib/index.ts'
import { folder, opened } from './core/setup.ts'
import { random } from '../rig/random.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

function text(name: string, lines: number): string {
  return Array.from({ length: lines }, (_, n) => `${name} line ${n + 1}: ${'lorem ipsum '.repeat(3)}`).join('\n')
}

/** The text of a tool result, or undefined for another message. */
function resultOf(message: unknown): string | undefined {
  const { role, content } = message as { role: string; content: { type: string; text?: string }[] }
  return role === 'toolResult' ? content.map((block) => block.text ?? '').join('\n') : undefined
}

/** The name in a reference line; undefined for any other text. */
function referenced(shown: string): string | undefined {
  return /^toolcall_ref id=(\S+) tool=\S+ status=ok(?: -> [^\n]+)?$/.exec(shown)?.[1]
}

describe("pi-agent-core's Agent", () => {
  async function session(layout: 'references' | 'sections', rounds: number) {
    const manager = await opened({ cwd: folder() })
    let rolls = 0
    const projection = new Projection(manager, { layout, model: MODEL, systemTokens: 100, onRoll: () => (rolls += 1) })
    const requests: Message[][] = []
    const core = createFauxCore({ models: [{ id: 'faux', contextWindow: 200_000 }] })
    core.setResponses(
      Array.from({ length: 2 * rounds }, (_, n) => (context: TranscriptContext) => {
        requests.push(structuredClone(context.messages) as Message[])
        return n % 2 === 0 ? fauxAssistantMessage(fauxToolCall('show', { name: `f${n}` }, { id: `call_${n}` })) : fauxAssistantMessage(`seen ${n}`)
      }),
    )
    const show: AgentTool = {
      name: 'show',
      label: 'show',
      description: 'Shows a text',
      parameters: Type.Object({ name: Type.String() }),
      execute: async (_id, { name }: any) => ({ content: [{ type: 'text', text: text(name, 40) }], details: undefined }),
    }
    const agent = new Agent({
      initialState: { systemPrompt: 'You help.', model: core.getModel(), tools: [show] },
      streamFn: core.streamSimple,
      transformContext: (messages) => projection.transform(messages) as Promise<typeof messages>,
    })
    for (let round = 0; round < rounds; round += 1) await agent.prompt(`round ${round}`)
    expect(agent.state.errorMessage).toBeUndefined()
    expect(requests).toHaveLength(2 * rounds)
    return { manager, agent, requests, rolls: () => rolls }
  }

  test('references: outputs collapse, the rest is extended byte for byte, and the agent keeps its own messages', async () => {
    const { manager, agent, requests, rolls } = await session('references', 24)
    expect(rolls()).toBeGreaterThan(0)
    let rewritten = 0
    for (const [n, request] of requests.entries()) {
      if (n === 0) continue
      const before = requests[n - 1]!.map((message) => JSON.stringify(message))
      const same = request.slice(0, before.length).map((message) => JSON.stringify(message))
      if (JSON.stringify(before) !== JSON.stringify(same)) rewritten += 1
    }
    expect(rewritten).toBe(rolls())
    const own = agent.state.messages.map(resultOf).filter((shown) => shown !== undefined)
    expect(own).toEqual(own.map((_, n) => text(`f${2 * n}`, 40)))
    const sent = requests
      .at(-1)!
      .map(resultOf)
      .filter((shown) => shown !== undefined)
    expect(sent).toHaveLength(24)
    const names = sent.map(referenced)
    expect(names.filter((name) => name !== undefined).length).toBeGreaterThan(5)
    for (const [n, name] of names.entries()) {
      if (name === undefined) expect(sent[n]).toBe(own[n])
      else expect((await manager.activate(name)).content).toBe(own[n])
    }
  })

  test('sections: references in the conversation, contents behind it', async () => {
    const { manager, requests } = await session('sections', 5)
    const view = await manager.assemble()
    const last = requests.at(-1)!
    expect(last[0]).toMatchObject({ role: 'system' })
    expect(JSON.stringify(last[1])).toContain(JSON.stringify(view.metadataPool).slice(1, -1).split('\\n')[0])
    const results = last.map(resultOf).filter((shown) => shown !== undefined)
    expect(results.map((shown) => referenced(shown) !== undefined)).toEqual([true, true, true, true, true])
    const content = JSON.stringify(last.at(-1))
    expect(content).toContain('ACTIVE_CONTENT id=call_8')
    expect(content).not.toContain('ACTIVE_CONTENT id=call_0')
  })

  test('sections: an image stays with its result, whose text is below', async () => {
    const manager = await opened({ cwd: folder(), layout: 'sections' })
    const image = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }
    const result = { role: 'toolResult', toolCallId: 'c', toolName: 'custom', isError: false }
    const sent = await manager.transformContext([
      { role: 'user', content: 'Look' },
      { role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'custom', arguments: {} }] },
      { ...result, content: [{ type: 'text', text: 'a picture' }, image] },
    ])
    const reference = { type: 'text', text: 'toolcall_ref id=c tool=custom status=ok' }
    expect(sent.find((message) => (message as { role: string }).role === 'toolResult')).toEqual({ ...result, content: [reference, image] })
    expect(JSON.stringify(sent.at(-1))).toContain('ACTIVE_CONTENT id=c\\na picture')
  })
})

describe('a bare array of messages', () => {
  test('is projected as it grows; where the harness takes back its end, the session goes back with it', async () => {
    const manager = await opened({ cwd: folder(), model: MODEL })
    const messages: object[] = [{ role: 'user', content: 'go' }]
    for (let n = 0; n < 6; n += 1) {
      messages.push({ role: 'assistant', content: [{ type: 'toolCall', id: `c${n}`, name: 'bash', arguments: { n } }] })
      messages.push({ role: 'toolResult', toolCallId: `c${n}`, toolName: 'bash', content: [{ type: 'text', text: text(`c${n}`, 3) }], isError: false })
      expect(await manager.transformContext(messages)).toEqual(messages)
    }
    const shorter = messages.slice(0, 5)
    // The window is that of the earlier moment, when all of it was active.
    expect(await manager.transformContext(shorter)).toEqual(shorter)
    expect((await manager.sessionSets()).activeSet).toEqual(['c0', 'c1'])
    expect(await manager.transformContext([])).toEqual([])
    await expect(manager.transformContext('go' as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('calls recorded outside of the messages hide neither the first message nor a later result', async () => {
    const manager = await opened({ cwd: folder(), model: MODEL })
    await manager.recordToolcall({ id: 'c', tool: 'bash', args: { command: 'one' }, content: 'before', status: 'ok' })
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'bash', arguments: { command: 'two' } }] },
      { role: 'toolResult', toolCallId: 'c', toolName: 'bash', content: [{ type: 'text', text: 'after' }], isError: false },
    ]
    expect(await manager.transformContext(messages)).toEqual(messages)
    expect((await manager.query({ type: 'toolcall' })).map(({ content }) => content)).toEqual(['before', 'after'])
    const { chat } = await manager.assemble()
    expect(chat.map((message) => (message as { role: string }).role)).toEqual(['toolResult', 'user', 'assistant', 'toolResult'])
    expect(chat[1]).toMatchObject({ role: 'user', content: 'Hello' })
  })

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('state and request, session %i', async (seed) => {
    const rng = random(seed).next
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(rng() * list.length)]
    let now = Date.UTC(2026, 0, 1)
    const options: ProjectionOptions = { model: MODEL, systemTokens: 1000, now: () => now }
    const manager = await opened({ cwd: folder(), window: { perTurn: 3, turnsBack: 2 } })
    const projection = new Projection(manager, options)
    const messages: object[] = []
    const outputs = new Map<string, string>()
    /** The outputs that were restored or pinned, perhaps after they had collapsed. */
    const asked = new Set<string>()
    let calls = 0
    for (let step = 0; step < 60; step += 1) {
      const dice = rng()
      if (step === 0 || dice < 0.25) messages.push({ role: 'user', content: `prompt ${step}`, timestamp: now })
      else if (dice < 0.75) {
        const made = Array.from({ length: 1 + Math.floor(rng() * 3) }, () => {
          const id = `call_${(calls += 1)}`
          outputs.set(id, text(id, rng() < 0.1 ? 400 : rng() < 0.2 ? 1 : 5 + Math.floor(rng() * 40)))
          return id
        })
        messages.push({
          role: 'assistant',
          content: made.map((id) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: id } })),
          timestamp: now,
        })
        for (const id of made) {
          const content = [{ type: 'text', text: outputs.get(id) }]
          messages.push({ role: 'toolResult', toolCallId: id, toolName: 'bash', content, isError: false, timestamp: now })
        }
      } else if (dice < 0.9) {
        const id = pick([...outputs.keys()])
        const change = pick(['activate', 'deactivate', 'pin', 'unpin'] as const)!
        if (id !== undefined) {
          await manager[change](id)
          if (change === 'activate' || change === 'pin') asked.add(id)
        }
      } else messages.push({ role: 'assistant', content: [{ type: 'text', text: 'fine' }], timestamp: now })
      const pause = rng() < 0.15
      now += pause ? 600_000 : 1000
      const sent = await projection.transform(messages)
      await checkSight(manager, sent, outputs, asked, pause)
    }
  })
})

/** After this many answers text may leave for nothing, however short. */
const OLD = 25

/**
 * Each visible text is the whole object or a reference from which the whole can be restored. Old text has left where everything
 * stale had to be rolled (`free`: after a pause in which the cache died), unless it was restored or pinned.
 */
async function checkSight(
  manager: ContextManager,
  sent: readonly unknown[],
  outputs: ReadonlyMap<string, string>,
  asked: ReadonlySet<string>,
  free: boolean,
): Promise<void> {
  let answers = sent.filter((message) => (message as { role: string }).role === 'assistant').length
  for (const message of sent) {
    if ((message as { role: string }).role === 'assistant') answers -= 1
    const shown = resultOf(message)
    if (shown === undefined) continue
    const { toolCallId: id } = message as { toolCallId: string }
    const whole = outputs.get(id)!
    const name = referenced(shown)
    if (name !== undefined) {
      expect((await manager.get(name))?.content).toBe(whole)
      continue
    }
    expect(shown).toBe(whole)
    if (free && answers >= OLD && !asked.has(id) && whole.length >= 200) throw new Error(`${id} is old and still in sight after a free roll`)
  }
}
