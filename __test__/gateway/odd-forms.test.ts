/** Messages in rare forms through the gateway, in long sessions that roll: each stays as the agent sends it, and nothing is refused. */
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { WIRES } from '../../rig/wires.ts'
import type { WireName } from '../../rig/wires.ts'
import { broughtBack, gatewayTo, long } from './support.ts'
import { words as wordsOf } from './turns.ts'
import { ID, sendIn } from './wire-agents.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

const TURNS = 12

const words = (name: string, count = 12): string => wordsOf(name, count)

/** A format: its usual messages, and steps in rare forms by name, given the number of the turn. */
interface Form {
  wire: WireName
  odd: Record<string, (n: number) => object[]>
}

const base64 = (name: string): string => Buffer.from(`${name} `.repeat(400)).toString('base64')

const CHAT: Form = {
  wire: 'openai-chat',
  odd: {
    'a refusal': (n) => [
      { role: 'assistant', content: null, refusal: words(`refused ${n}`) },
      { role: 'user', content: `why ${n}?` },
    ],
    'a refusal as a part': (n) => [
      { role: 'assistant', content: [{ type: 'refusal', refusal: `no ${n}` }] },
      { role: 'user', content: `why ${n}?` },
    ],
    'speech in the answer': (n) => [
      { role: 'assistant', content: null, audio: { id: `audio_${n}` } },
      { role: 'user', content: `again ${n}?` },
    ],
    'speech and a file in the prompt': (n) => [
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: base64(`wav ${n}`), format: 'wav' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${base64(`pdf ${n}`)}` } },
        ],
      },
    ],
    'words of a developer': (n) => [{ role: 'developer', content: words(`rule ${n}`) }],
    'a function in the first form': (n) => [
      { role: 'assistant', content: null, function_call: { name: 'bash', arguments: JSON.stringify({ command: words(`cat f${n}`) }) } },
      { role: 'function', name: 'bash', content: long(`f${n}`) },
    ],
    'calls that are null, and none': (n) => [
      { role: 'assistant', content: words(`said ${n}`, 1), tool_calls: null, function_call: null, audio: null, refusal: null },
      { role: 'user', content: `go ${n}` },
      { role: 'assistant', content: words(`said more ${n}`, 1), tool_calls: [] },
      { role: 'user', content: `and on ${n}` },
    ],
    'a name of the user, and fields of the provider': (n) => [{ role: 'user', name: 'ada', content: `mine ${n}`, x_field: { kept: [n] } }],
  },
}

const RESPONSES: Form = {
  wire: 'openai-responses',
  odd: {
    'items that the provider has stored': (n) => [
      { type: 'item_reference', id: `rs_${n}` },
      { type: 'item_reference', id: `msg_${n}` },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: `go ${n}` }] },
    ],
    'a compaction by the provider': (n) => (n === 2 ? [{ type: 'compaction', id: 'cmp_1', encrypted_content: base64('summary') }] : []),
    'reasoning that only the provider reads': (n) => [
      { type: 'reasoning', id: `rs_${n}`, summary: [], encrypted_content: base64(`thought ${n}`) },
      { type: 'function_call', call_id: `enc_${n}`, name: 'bash', arguments: '{"command":"true"}' },
      { type: 'function_call_output', call_id: `enc_${n}`, output: '' },
    ],
    'a refusal': (n) => [
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: `no ${n}` }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: `why ${n}` }] },
    ],
    'words of a developer': (n) => [{ role: 'developer', content: words(`rule ${n}`) }],
    speech: (n) => [{ type: 'message', role: 'user', content: [{ type: 'input_audio', input_audio: { data: base64(`wav ${n}`), format: 'wav' } }] }],
  },
}

const SIGNED = { thoughtSignature: 'skip_thought_signature_validator' }

const GEMINI: Form = {
  wire: 'gemini',
  odd: {
    'a signature on an empty text': (n) => [
      { role: 'model', parts: [{ text: words(`said ${n}`) }, { text: '', thoughtSignature: `s${n}` }] },
      { role: 'user', parts: [{ text: `go ${n}` }] },
    ],
    'a signature on a thought': (n) => [
      { role: 'model', parts: [{ text: words(`thought ${n}`), thought: true, thoughtSignature: `s${n}` }, { text: `said ${n}` }] },
      { role: 'user', parts: [{ text: `go ${n}` }] },
    ],
    'a part with a signature and nothing else': (n) => [
      { role: 'model', parts: [{ thoughtSignature: `s${n}` }, { text: `said ${n}` }] },
      { role: 'user', parts: [{ text: `go ${n}` }] },
    ],
    'files in a response': (n) =>
      n % 6 !== 0
        ? []
        : [
            { role: 'model', parts: [{ functionCall: { id: `pic_${n}`, name: 'picture', args: {} }, ...SIGNED }] },
            {
              role: 'user',
              parts: [
                {
                  functionResponse: {
                    id: `pic_${n}`,
                    name: 'picture',
                    response: { image: { $ref: 'a.png' }, text: words(`shown ${n}`) },
                    parts: [
                      { inlineData: { mimeType: 'image/png', displayName: 'a.png', data: base64(`png ${n}`) } },
                      { fileData: { mimeType: 'image/png', fileUri: `gs://b/${n}` } },
                    ],
                  },
                },
              ],
            },
          ],
  },
}

describe.each([
  ['Chat Completions', CHAT],
  ['Responses', RESPONSES],
  ['Gemini', GEMINI],
])('%s', (_, form) => {
  test.each(Object.keys(form.odd))('%s stays as it is, and outputs leave around it', async (kind) => {
    const server = await startModelServer(() => 'ok')
    const { gateway, warnings } = await gatewayTo(server.url)
    const { headers, list, said, called, returned, answered } = WIRES[form.wire]
    const messages: object[] = []
    const own: string[] = []
    const send = (): Promise<void> => sendIn(gateway, form.wire, messages, headers(ID))
    for (let n = 0; n < TURNS; n += 1) {
      messages.push(said(`prompt ${n}`))
      await send()
      const odd = form.odd[kind]!(n)
      messages.push(...odd)
      own.push(...odd.map((one) => JSON.stringify(one)))
      if (odd.length > 0) await send()
      for (const name of [`a${n}`, `b${n}`]) {
        messages.push(called(`call_${name}`, `cat ${name}`), returned(`call_${name}`, long(name)))
        await send()
      }
      messages.push(answered(`done ${n}`))
    }
    server.check()
    expect(warnings).toEqual([])
    const last = server.requests.at(-1)!
    expect(last.raw.includes('toolcall_ref')).toBe(true)
    const [session, ...others] = gateway.ledger.sessions
    expect(others).toEqual([])
    expect(rewritten(server.requests).length).toBeLessThanOrEqual(session!.rolls.length)
    const sent = new Set((last.body[list] as object[]).map((one) => JSON.stringify(one)))
    expect(own.filter((one) => !sent.has(one))).toEqual([])
    // Each output that has left is brought back as the text of its call.
    const names = (await broughtBack(gateway, last)).map((text) => /([ab]\d+) line 0 /.exec(text)?.[1])
    expect(names).toEqual([...new Set(names)])
    expect(names).not.toContain(undefined)
  })
})

const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64('png') } }

describe.each([
  ['Anthropic', 'anthropic', { picture: [PNG, { type: 'text', text: 'see this' }], prompt: [{ type: 'text', text: 'and look at this, too' }] }],
  ['Gemini', 'gemini', { picture: [{ inlineData: { mimeType: 'image/png', data: base64('png') } }], prompt: [{ text: 'and look at this, too' }] }],
] as const)('%s: behind a result, in its message', (_, wire, more) => {
  test.each(['picture', 'prompt'] as const)('a %s stays there, and roles alternate', async (what) => {
    const server = await startModelServer(() => 'ok')
    const { gateway } = await gatewayTo(server.url)
    const { headers, list, said, called, returned, answered } = WIRES[wire]
    const messages: object[] = []
    const send = (): Promise<void> => sendIn(gateway, wire, messages, headers(ID))
    for (let n = 0; n < 60; n += 1) {
      // Of Gemini, nothing leaves before the next prompt.
      if (n % 10 === 0) {
        messages.push(said('next'))
        await send()
      }
      const results = returned(`call_${n}`, long(`f${n}`)) as Record<string, unknown>
      const field = wire === 'gemini' ? 'parts' : 'content'
      const rest = n % 5 === 0 ? more[what] : []
      messages.push(called(`call_${n}`, `cat f${n}`), { ...results, [field]: [...(results[field] as object[]), ...rest] })
      await send()
      if (n % 10 === 9) messages.push(answered('done'))
    }
    expect(server.requests.at(-1)!.raw.length).toBeLessThan(JSON.stringify(messages).length / 2)
    for (const { body: sent } of server.requests) {
      const roles = (sent[list] as { role: string }[]).map(({ role }) => role)
      expect(roles.filter((role, at) => role === roles[at - 1])).toEqual([])
    }
  })
})
