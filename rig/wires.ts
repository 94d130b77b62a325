/** Requests and messages of the gateway's formats, as agents send them. */

/** The parts of a format that differ. */
export interface Wire {
  /** The path at the gateway. */
  path: string
  /** The headers that name a session; none where agents name none. */
  headers(session: string): Record<string, string>
  /** The body around the messages, and the name of their list in it. */
  body(messages: readonly object[]): object
  list: string
  /** A prompt, a call of the shell, its output, and an answer. */
  said(text: string): object
  called(id: string, command: string): object
  returned(id: string, output: string): object
  answered(text: string): object
}

/** The names of the formats. */
export type WireName = 'anthropic' | 'openai-chat' | 'openai-responses' | 'gemini'

const TOOLS = ['bash', 'write', 'mcp__context__activate']

export const WIRES: Record<WireName, Wire> = {
  anthropic: {
    path: '/anthropic/v1/messages',
    headers: (session) => ({ 'user-agent': 'claude-cli/2.1.331', 'x-claude-code-session-id': session }),
    body: (messages) => ({
      model: 'claude-sonnet-4-5',
      max_tokens: 1000,
      tools: TOOLS.map((name) => ({ name, description: name, input_schema: { type: 'object' } })),
      messages,
    }),
    list: 'messages',
    said: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
    called: (id, command) => ({ role: 'assistant', content: [{ type: 'tool_use', id, name: 'bash', input: { command } }] }),
    returned: (id, output) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] }),
    answered: (text) => ({ role: 'assistant', content: [{ type: 'text', text }] }),
  },
  'openai-chat': {
    path: '/openai/v1/chat/completions',
    headers: (session) => ({ 'x-session-id': session }),
    body: (messages) => ({
      model: 'gpt-6-sol',
      tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
      messages,
    }),
    list: 'messages',
    said: (content) => ({ role: 'user', content }),
    called: (id, command) => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command }) } }],
    }),
    returned: (id, content) => ({ role: 'tool', tool_call_id: id, content }),
    answered: (content) => ({ role: 'assistant', content }),
  },
  'openai-responses': {
    path: '/openai/responses',
    headers: (session) => ({ 'user-agent': 'codex_exec/0.169.0', 'thread-id': session }),
    body: (input) => ({ model: 'gpt-6-sol', tools: TOOLS.map((name) => ({ type: 'function', name })), input }),
    list: 'input',
    said: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
    called: (id, command) => ({ type: 'function_call', call_id: id, name: 'bash', arguments: JSON.stringify({ command }) }),
    returned: (id, output) => ({ type: 'function_call_output', call_id: id, output }),
    answered: (text) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }),
  },
  // Its sessions have no IDs.
  gemini: {
    path: '/gemini/v1beta/models/gemini-3-pro:generateContent',
    headers: () => ({}),
    body: (contents) => ({
      tools: [{ functionDeclarations: ['bash', 'write', 'mcp_context_activate'].map((name) => ({ name, parameters: { type: 'object' } })) }],
      contents,
    }),
    list: 'contents',
    said: (text) => ({ role: 'user', parts: [{ text }] }),
    called: (id, command) => ({
      role: 'model',
      parts: [{ functionCall: { id, name: 'bash', args: { command } }, thoughtSignature: 'skip_thought_signature_validator' }],
    }),
    returned: (id, output) => ({ role: 'user', parts: [{ functionResponse: { id, name: 'bash', response: { output } } }] }),
    answered: (text) => ({ role: 'model', parts: [{ text }] }),
  },
}
