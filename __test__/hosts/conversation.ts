/** One conversation in the words of every shape, so that what they are turned into can be compared. */
import { expect } from 'vitest'
import type { ShapeName } from '../../lib/projection/harness.ts'
import { random } from '../../rig/random.ts'

/** A tool call with its result. */
export interface Call {
  id: string
  name: string
  args: Record<string, unknown>
  output: string
  isError?: boolean
  /** The result has an image beside its text. */
  image?: boolean
}

/** An event of a conversation. */
export type Step = { user: string } | { reasoning?: string; text?: string; calls: Call[] }

/** An image, in base64. */
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/**
 * A conversation of a seed: prompts, reasoning, parallel calls, images, errors, long arguments and long outputs. `long`: messages
 * and reasoning are also long.
 */
export function conversation(seed: number, steps: number, long = false): Step[] {
  const { next } = random(seed)
  const said = (text: string, count: number): string => (long ? `${text} ${`${text}, at length. `.repeat(count)}` : text)
  const words = (count: number, name: string) => Array.from({ length: count }, (_, n) => `${name} line ${n} ${'lorem ipsum '.repeat(3)}`).join('\n')
  const result: Step[] = [{ user: 'begin' }]
  for (let step = 1; step < steps; step += 1) {
    if (next() < 0.25) {
      result.push({ user: said(`prompt ${step}`, 90) })
      continue
    }
    const calls = Array.from({ length: Math.floor(next() * 4) }, (_, n): Call => {
      const id = `call_${step}_${n}`
      const isWrite = next() < 0.3
      return {
        id,
        name: isWrite ? 'write' : 'bash',
        args: isWrite ? { path: `f${step}.txt`, content: words(30, `${id} argument`) } : { command: `run ${id}` },
        output: words(next() < 0.2 ? 1 : 5 + Math.floor(next() * 50), id),
        ...(next() < 0.1 ? { isError: true } : {}),
        ...(next() < 0.1 ? { image: true } : {}),
      }
    })
    result.push({
      calls,
      ...(next() < 0.4 ? { reasoning: said(`thought ${step}`, 40) } : {}),
      ...(next() < 0.5 || calls.length === 0 ? { text: said(`answer ${step}`, 40) } : {}),
    })
  }
  return result
}

const signed = (text: string) => Buffer.from(`signature of ${text}`).toString('base64')

/** The messages of a conversation in a shape, in groups: what one step adds. */
export const written: Record<ShapeName, (step: Step, at: number) => object[]> = {
  pi(step, at) {
    if ('user' in step) return [{ role: 'user', content: step.user, timestamp: at }]
    const { reasoning, text, calls } = step
    return [
      {
        role: 'assistant',
        content: [
          ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning, thinkingSignature: signed(reasoning) }]),
          ...(text === undefined ? [] : [{ type: 'text', text }]),
          ...calls.map(({ id, name, args }) => ({ type: 'toolCall', id, name, arguments: args })),
        ],
        timestamp: at,
      },
      ...calls.map(({ id, name, output, isError = false, image }) => ({
        role: 'toolResult',
        toolCallId: id,
        toolName: name,
        content: [{ type: 'text', text: output }, ...(image === true ? [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] : [])],
        isError,
        timestamp: at,
      })),
    ]
  },

  anthropic(step) {
    if ('user' in step) return [{ role: 'user', content: step.user }]
    const { reasoning, text, calls } = step
    const answer = {
      role: 'assistant',
      content: [
        ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning, signature: signed(reasoning) }]),
        ...(text === undefined ? [] : [{ type: 'text', text }]),
        ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args })),
      ],
    }
    const results = calls.map(({ id, output, isError, image }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content:
        image === true
          ? [
              { type: 'text', text: output },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
            ]
          : output,
      ...(isError === true ? { is_error: true } : {}),
    }))
    return [answer, ...(results.length === 0 ? [] : [{ role: 'user', content: results }])]
  },

  'openai-chat'(step) {
    if ('user' in step) return [{ role: 'user', content: step.user }]
    const { text, calls } = step
    const made = calls.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }))
    return [
      { role: 'assistant', content: text ?? null, ...(made.length === 0 ? { content: text ?? '' } : { tool_calls: made }) },
      ...calls.map(({ id, output, image }) => ({
        role: 'tool',
        tool_call_id: id,
        content:
          image === true
            ? [
                { type: 'text', text: output },
                { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
              ]
            : output,
      })),
    ]
  },

  'openai-responses'(step) {
    if ('user' in step) return [{ role: 'user', content: step.user }]
    const { reasoning, text, calls } = step
    return [
      ...(reasoning === undefined
        ? []
        : [{ type: 'reasoning', id: `rs_${reasoning}`, summary: [{ type: 'summary_text', text: reasoning }], encrypted_content: signed(reasoning) }]),
      ...(text === undefined ? [] : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] }]),
      ...calls.map(({ id, name, args }) => ({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) })),
      ...calls.map(({ id, output, isError, image }) => ({
        type: 'function_call_output',
        call_id: id,
        output:
          image === true
            ? [
                { type: 'input_text', text: output },
                { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
              ]
            : output,
        ...(isError === true ? { status: 'incomplete' } : {}),
      })),
    ]
  },

  'ai-sdk'(step) {
    if ('user' in step) return [{ role: 'user', content: step.user }]
    const { reasoning, text, calls } = step
    const results = calls.map(({ id, name, output, isError, image }) => ({
      type: 'tool-result',
      toolCallId: id,
      toolName: name,
      output:
        image === true
          ? {
              type: 'content',
              value: [
                { type: 'text', text: output },
                { type: 'image-data', data: PIXEL, mediaType: 'image/png' },
              ],
            }
          : { type: isError === true ? 'error-text' : 'text', value: output },
    }))
    return [
      {
        role: 'assistant',
        content: [
          ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning, providerOptions: { anthropic: { signature: signed(reasoning) } } }]),
          ...(text === undefined ? [] : [{ type: 'text', text }]),
          ...calls.map(({ id, name, args }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input: args })),
        ],
      },
      ...(results.length === 0 ? [] : [{ role: 'tool', content: results }]),
    ]
  },

  gemini(step) {
    if ('user' in step) return [{ role: 'user', parts: [{ text: step.user }] }]
    const { reasoning, text, calls } = step
    const parts = [
      ...(reasoning === undefined ? [] : [{ text: reasoning, thought: true, thoughtSignature: signed(reasoning) }]),
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ id, name, args }) => ({ functionCall: { id, name, args } })),
    ]
    const results = calls.map(({ id, name, output, isError, image }) => ({
      functionResponse: {
        id,
        name,
        response: isError === true ? { error: output } : { output },
        ...(image === true ? { parts: [{ inlineData: { mimeType: 'image/png', data: PIXEL } }] } : {}),
      },
    }))
    return [{ role: 'model', parts }, ...(results.length === 0 ? [] : [{ role: 'user', parts: results }])]
  },
}

/** The names of all shapes. */
export const shapes = Object.keys(written) as ShapeName[]

/** A call of a number with much to collapse: its output, one long argument at the top, and one further down. */
export function longCall(n: number): Step {
  const long = (name: string, lines: number): string =>
    Array.from({ length: lines }, (_, at) => `${name} line ${at} of a text that is long enough to matter`).join('\n')
  return {
    calls: [
      {
        id: `call_${n}`,
        name: 'write',
        args: { path: `/nowhere/${n}.txt`, content: long(`content ${n}`, 30), edits: [{ newText: long(`deep ${n}`, 12) }] },
        output: `wrote ${n}\n${long(`n${n}`, 50)}`,
      },
    ],
  }
}

/** The IDs of references, lines and marks in a body. */
const NAMED = /(?:\[collapsed #|(?<![\w])id=)([0-9a-f]{8,})/g

/**
 * Checks that each ID and mark in a request brings back the output of its {@link longCall}, and the arguments where the request lacks them.
 * Returns the number of IDs.
 */
export async function checkNamed(sent: string, steps: readonly Step[], recall: (id: string) => Promise<readonly (string | undefined)[]>): Promise<number> {
  const ids = new Set([...sent.matchAll(NAMED)].map((found) => found[1]!))
  for (const id of ids) {
    const [output, given] = await recall(id)
    const found = steps.flatMap((step) => ('user' in step ? [] : step.calls)).find((one) => one.output === output)
    expect(found, `${id} brings back ${output?.slice(0, 80)}`).toBeDefined()
    const { content, edits } = found!.args as { content: string; edits: { newText: string }[] }
    // The formats of OpenAI have arguments as JSON within JSON.
    const once = [content, edits[0]!.newText].map((text) => JSON.stringify(text).slice(1, -1))
    if (once.every((text) => sent.includes(text) || sent.includes(JSON.stringify(text).slice(1, -1)))) continue
    expect(given, `the arguments of ${id}`).toBeDefined()
    expect(JSON.parse(given!.replace('arguments of the call: ', ''))).toEqual(found!.args)
  }
  return ids.size
}

/** The steps up to the first prompt behind this share of them. */
export function beginning(steps: readonly Step[], share: number): Step[] {
  return steps.slice(
    0,
    steps.findIndex((step, at) => at > share * steps.length && 'user' in step),
  )
}

/**
 * Returns the shown parts of each call in a request: the text of its result and its arguments, by the call's ID; the same in every
 * shape.
 */
export function shown(messages: readonly unknown[]): Map<string, { text?: string; args?: unknown }> {
  const found = new Map<string, { text?: string; args?: unknown }>()
  const note = (id: unknown, what: { text?: string; args?: unknown }) => found.set(String(id), { ...found.get(String(id)), ...what })
  const join = (content: unknown): string =>
    typeof content === 'string' ? content : (content as { text?: string }[]).flatMap((one) => (one.text === undefined ? [] : [one.text])).join('\n')
  for (const message of messages as Record<string, any>[]) {
    if (message['role'] === 'toolResult') note(message['toolCallId'], { text: join(message['content']) })
    if (message['role'] === 'tool' && message['tool_call_id'] !== undefined) note(message['tool_call_id'], { text: join(message['content']) })
    if (message['type'] === 'function_call_output') note(message['call_id'], { text: join(message['output']) })
    if (message['type'] === 'function_call') note(message['call_id'], { args: JSON.parse(message['arguments']) })
    for (const call of message['tool_calls'] ?? []) note(call.id, { args: JSON.parse(call.function.arguments) })
    for (const { functionCall: call, functionResponse: result } of message['parts'] ?? []) {
      if (call !== undefined) note(call.id, { args: call.args })
      if (result !== undefined) note(result.id, { text: result.response.output ?? result.response.error })
    }
    if (!Array.isArray(message['content'])) continue
    for (const block of message['content']) {
      if (block.type === 'toolCall') note(block.id, { args: block.arguments })
      if (block.type === 'tool_use') note(block.id, { args: block.input })
      if (block.type === 'tool-call') note(block.toolCallId, { args: block.input })
      if (block.type === 'tool_result') note(block.tool_use_id, { text: join(block.content) })
      if (block.type === 'tool-result') note(block.toolCallId, { text: join(block.output.value) })
    }
  }
  return found
}
