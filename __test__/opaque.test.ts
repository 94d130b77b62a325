/** Content that stays as it is, in each format: it is read with its size, and an answer or a result that has it never leaves. */
import { describe, expect, test } from 'vitest'
import { sizeOf } from '../lib/projection/driver/size.ts'
import { mayLeave } from '../lib/projection/table.ts'
import { shapeNamed } from '../lib/projection/shapes.ts'
import type { ShapeName } from '../lib/projection/shapes.ts'

const LONG = 'word '.repeat(2_000)
const PNG = Buffer.from('png'.repeat(2_000)).toString('base64')

const answer = (...content: object[]) => ({ role: 'assistant', content })
const result = (...content: object[]) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] })
const model = (...parts: object[]) => ({ role: 'model', parts })

/** A message, and the characters that it counts for besides the two of `ok`. */
const CONTENT: [string, ShapeName, object, number][] = [
  ['a call that Anthropic runs', 'anthropic', answer({ type: 'server_tool_use', id: 's', name: 'web_search', input: { query: LONG } }), LONG.length + 10],
  [
    'a search result that is encrypted',
    'anthropic',
    answer({ type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result', url: '', title: '', encrypted_content: LONG }] }),
    LONG.length * 0.75,
  ],
  ['an output of code', 'anthropic', answer({ type: 'bash_code_execution_tool_result', tool_use_id: 's', content: { stdout: LONG, stderr: '' } }), LONG.length],
  [
    'a text with citations',
    'anthropic',
    answer({ type: 'text', text: LONG, citations: [{ type: 'web_search_result_location', encrypted_index: 'abcd' }] }),
    LONG.length + 3,
  ],
  ['a result with a tool reference', 'anthropic', result({ type: 'tool_reference', tool_name: 'late' }), 4],
  [
    'a result with search results',
    'anthropic',
    result({ type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: LONG }] }),
    LONG.length + 2,
  ],
  ['a result with a document', 'anthropic', result({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: LONG } }), LONG.length],
  ['a result with a PDF', 'anthropic', result({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PNG } }), 4_800],
  ['a result with an image', 'anthropic', result({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }), 4_800],
  ['a result with the address of an image', 'anthropic', result({ type: 'image', source: { type: 'url', url: 'https://x' } }), 4_800],
  ['a result with a small image', 'anthropic', result({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }), 4_800],
  [
    'a result with the address of an image',
    'openai-responses',
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: 'https://x' }] },
    4_800,
  ],
  ['a prompt with the address of an image', 'openai-chat', { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }, 4_800],
  ['a small image', 'gemini', { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }] }, 4_800],
  ['a result with a file', 'anthropic', result({ type: 'document', source: { type: 'file', file_id: 'f' } }), 4_801],
  ['a search that OpenAI runs', 'openai-responses', { type: 'web_search_call', id: 'w', status: 'completed', action: { query: LONG } }, LONG.length],
  [
    'code that OpenAI runs',
    'openai-responses',
    { type: 'code_interpreter_call', id: 'c', container_id: '', code: '', outputs: [{ type: 'logs', logs: LONG }] },
    LONG.length,
  ],
  ['a tool of a remote server', 'openai-responses', { type: 'mcp_call', id: 'm', name: '', arguments: '', output: LONG }, LONG.length],
  ['an image that OpenAI has made', 'openai-responses', { type: 'image_generation_call', id: 'i', result: PNG }, 4_800],
  ['a call in another form', 'openai-responses', { type: 'shell_call', id: 's', call_id: 'c', action: { commands: [LONG] } }, LONG.length],
  [
    'a text with citations',
    'openai-responses',
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: LONG, annotations: [{ type: 'url_citation', url: 'u' }] }] },
    LONG.length + 1,
  ],
  [
    'a result with an image',
    'openai-responses',
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }] },
    4_800,
  ],
  ['code that Google runs', 'gemini', model({ executableCode: { language: '', code: LONG } }), LONG.length],
  ['its output', 'gemini', model({ codeExecutionResult: { outcome: '', output: LONG } }), LONG.length],
  ['a tool that Google runs', 'gemini', model({ toolResponse: { toolType: '', id: 'g', response: { found: LONG } }, thoughtSignature: 's' }), LONG.length],
  [
    'a result with an image',
    'gemini',
    {
      role: 'user',
      parts: [{ functionResponse: { id: 'c', name: 'n', response: { output: '' }, parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] } }],
    },
    4_800,
  ],
  [
    'a text with citations',
    'openai-chat',
    { role: 'assistant', content: LONG, annotations: [{ type: 'url_citation', url_citation: { url: 'u' } }] },
    LONG.length + 1,
  ],
  ['speech', 'openai-chat', { role: 'assistant', content: '', audio: { id: 'a', data: PNG } }, 4_800],
]

describe.each(CONTENT)('%s in the shape %s', (_, name, message, characters) => {
  const [part] = shapeNamed(name).read([message], 0).parts

  test('never leaves', () => {
    expect(mayLeave(part!)).toBe(false)
  })

  test('counts its size', () => {
    expect(sizeOf(part!)).toBe(characters)
  })
})

test.each<[ShapeName, object]>([
  ['anthropic', answer({ type: 'text', text: 'ok', citations: [] })],
  ['anthropic', answer({ type: 'text', text: 'ok', citations: null })],
  ['openai-responses', { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok', annotations: [] }] }],
  ['openai-chat', { role: 'assistant', content: 'ok', annotations: [], audio: null }],
])('a text without citations may leave: %s %j', (name, message) => {
  expect(mayLeave(shapeNamed(name).read([message], 0).parts[0]!)).toBe(true)
})
