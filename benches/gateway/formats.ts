/** The formats in which the gateway's bench sends the same conversation. */

/** A format: where its requests go, what they have in them, and how its streamed answers look. */
export interface Format {
  name: string
  /** The path at the provider, and at the gateway. */
  paths: { plain: string; gateway: string }
  /** The headers that name a session; none where agents name none. */
  headers(session: string): Record<string, string>
  body(messages: readonly object[]): object
  said(text: string): object
  /** A call with its output. `id` is also its command. */
  called(id: string, output: string): object[]
  /** The lines of an answer: the first, one with words, and the last. */
  answer: { first: object; words(text: string): object; last: object }
}

const TOOLS = ['Bash', 'mcp__context__activate']

const anthropic: Format = {
  name: 'Anthropic',
  paths: { plain: '/v1/messages', gateway: '/anthropic/v1/messages' },
  headers: (session) => ({ 'x-claude-code-session-id': session }),
  body: (messages) => ({
    model: 'claude-sonnet-4-5',
    stream: true,
    tools: TOOLS.map((name) => ({ name, input_schema: { type: 'object' } })),
    messages,
  }),
  said: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
  called: (id, output) => [
    { role: 'assistant', content: [{ type: 'tool_use', id, name: 'Bash', input: { command: id } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] },
  ],
  answer: {
    first: { type: 'message_start', message: { usage: { input_tokens: 10 } } },
    words: (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    last: { type: 'message_stop' },
  },
}

const chat: Format = {
  name: 'Chat Completions',
  paths: { plain: '/v1/chat/completions', gateway: '/openai/chat/completions' },
  headers: (session) => ({ 'x-session-id': session }),
  body: (messages) => ({
    model: 'gpt-5.1',
    stream: true,
    tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
    messages,
  }),
  said: (content) => ({ role: 'user', content }),
  called: (id, content) => [
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name: 'Bash', arguments: JSON.stringify({ command: id }) } }] },
    { role: 'tool', tool_call_id: id, content },
  ],
  answer: {
    first: { choices: [{ index: 0, delta: { role: 'assistant' } }] },
    words: (content) => ({ choices: [{ index: 0, delta: { content } }] }),
    last: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 10, completion_tokens: 1 } },
  },
}

const responses: Format = {
  name: 'Responses',
  paths: { plain: '/v1/responses', gateway: '/openai/responses' },
  headers: (session) => ({ 'thread-id': session }),
  body: (input) => ({ model: 'gpt-5.1', stream: true, tools: TOOLS.map((name) => ({ type: 'function', name })), input }),
  said: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
  called: (id, output) => [
    { type: 'function_call', call_id: id, name: 'Bash', arguments: JSON.stringify({ command: id }) },
    { type: 'function_call_output', call_id: id, output },
  ],
  answer: {
    first: { type: 'response.created', response: {} },
    words: (delta) => ({ type: 'response.output_text.delta', delta }),
    last: { type: 'response.completed', response: { usage: { input_tokens: 10, output_tokens: 1 } } },
  },
}

const GEMINI = '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse'

const gemini: Format = {
  name: 'Gemini',
  paths: { plain: GEMINI, gateway: `/gemini${GEMINI}` },
  headers: () => ({}),
  body: (contents) => ({
    tools: [{ functionDeclarations: ['bash', 'mcp_context_activate'].map((name) => ({ name, parameters: { type: 'object' } })) }],
    contents,
  }),
  said: (text) => ({ role: 'user', parts: [{ text }] }),
  called: (id, output) => [
    { role: 'model', parts: [{ functionCall: { id, name: 'bash', args: { command: id } }, thoughtSignature: 'skip_thought_signature_validator' }] },
    { role: 'user', parts: [{ functionResponse: { id, name: 'bash', response: { output } } }] },
  ],
  answer: {
    first: { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'o' }] } }] },
    words: (text) => ({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }] }),
    last: {
      candidates: [{ index: 0, content: { role: 'model', parts: [] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1 },
    },
  },
}

/** All of them; the first is that of the rows that need only one. */
export const FORMATS: readonly [Format, ...Format[]] = [anthropic, chat, responses, gemini]

/** The format of a request at the provider. */
export function formatAt(path: string): Format {
  const found = FORMATS.find(({ paths }) => paths.plain === path)
  if (found === undefined) throw new Error(`no format has the path ${path}`)
  return found
}
