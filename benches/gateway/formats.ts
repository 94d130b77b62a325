/** The formats in which the gateway's bench sends the same conversation. */
import { WIRES } from '../../rig/wires.ts'
import type { Wire, WireName } from '../../rig/wires.ts'

/** A format: where its requests go, what they have in them, and how its streamed answers look. */
export interface Format {
  name: string
  wire: Wire
  /** The path at the provider, and at the gateway. */
  paths: { plain: string; gateway: string }
  /** The lines of an answer: the first, one with words, and the last. */
  answer: { first: object; words(text: string): object; last: object }
}

const GEMINI = '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse'

const formatOf = (name: string, wire: WireName, plain: string, gateway: string, answer: Format['answer']): Format => ({
  ...{ name, answer, paths: { plain, gateway } },
  // Gemini's path says that an answer is streamed.
  wire: { ...WIRES[wire], body: (messages) => ({ ...WIRES[wire].body(messages), ...(wire === 'gemini' ? {} : { stream: true }) }) },
})

/** All of them; the first is that of the rows that need only one. */
export const FORMATS: readonly [Format, ...Format[]] = [
  formatOf('Anthropic', 'anthropic', '/v1/messages', '/anthropic/v1/messages', {
    first: { type: 'message_start', message: { usage: { input_tokens: 10 } } },
    words: (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    last: { type: 'message_stop' },
  }),
  formatOf('Chat Completions', 'openai-chat', '/v1/chat/completions', '/openai/chat/completions', {
    first: { choices: [{ index: 0, delta: { role: 'assistant' } }] },
    words: (content) => ({ choices: [{ index: 0, delta: { content } }] }),
    last: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 10, completion_tokens: 1 } },
  }),
  formatOf('Responses', 'openai-responses', '/v1/responses', '/openai/responses', {
    first: { type: 'response.created', response: {} },
    words: (delta) => ({ type: 'response.output_text.delta', delta }),
    last: { type: 'response.completed', response: { usage: { input_tokens: 10, output_tokens: 1 } } },
  }),
  formatOf('Gemini', 'gemini', GEMINI, `/gemini${GEMINI}`, {
    first: { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'o' }] } }] },
    words: (text) => ({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }] }),
    last: {
      candidates: [{ index: 0, content: { role: 'model', parts: [] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1 },
    },
  }),
]

/** The format of a request at the provider. */
export function formatAt(path: string): Format {
  const found = FORMATS.find(({ paths }) => paths.plain === path)
  if (found === undefined) throw new Error(`no format has the path ${path}`)
  return found
}
