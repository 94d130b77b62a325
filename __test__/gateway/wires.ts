/** Requests of the gateway's formats, as agents send them. */

const TOOLS = ['bash', 'write', 'mcp__context__activate']

/** The parts of a format on the wire that differ: the path, the headers, the body around the messages, and its list of them. */
export const WIRES = {
  anthropic: {
    path: '/anthropic/v1/messages',
    headers: (session: string) => ({ 'user-agent': 'claude-cli/2.1.331', 'x-claude-code-session-id': session }),
    body: (messages: readonly object[]) => ({
      model: 'claude-sonnet-4-5',
      max_tokens: 1000,
      tools: TOOLS.map((name) => ({ name, description: name, input_schema: { type: 'object' } })),
      messages,
    }),
    list: 'messages',
  },
  'openai-chat': {
    path: '/openai/v1/chat/completions',
    headers: (session: string) => ({ 'x-session-id': session }),
    body: (messages: readonly object[]) => ({
      model: 'gpt-6-sol',
      tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
      messages,
    }),
    list: 'messages',
  },
  'openai-responses': {
    path: '/openai/responses',
    headers: (session: string) => ({ 'user-agent': 'codex_exec/0.169.0', 'thread-id': session }),
    body: (input: readonly object[]) => ({ model: 'gpt-6-sol', tools: TOOLS.map((name) => ({ type: 'function', name })), input }),
    list: 'input',
  },
  // Its sessions have no IDs.
  gemini: {
    path: '/gemini/v1beta/models/gemini-3-pro:generateContent',
    headers: () => ({}),
    body: (contents: readonly object[]) => ({
      tools: [{ functionDeclarations: ['bash', 'write', 'mcp_context_activate'].map((name) => ({ name, parameters: { type: 'object' } })) }],
      contents,
    }),
    list: 'contents',
  },
} as const
