/** The binding of models by their answers and refusals, the binding that requests ask for, and reasoning that is withheld. */
import { describe, expect, test } from 'vitest'
import { askedOf, askingForDrops, BINDING_BETA, isBindingRefusal, ObservedBinding, readReport, withBindingBeta, Withheld } from '../lib/models/binding.ts'
import type { Binding } from '../lib/models/rules.ts'

describe('answers', () => {
  const dropped = { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'prefix_binding_mismatch' }
  const allowed = { ...dropped, type: 'thinking_mismatch_allowed' }

  test.each<[string, unknown, object | undefined]>([
    ['a list', [dropped, dropped], { dropped: 2, allowed: 0 }],
    ['an answer', { content: [], input_transformations: [allowed] }, { dropped: 0, allowed: 1 }],
    ['the start of a stream', { type: 'message_start', message: { input_transformations: [dropped] } }, { dropped: 1, allowed: 0 }],
    [
      "OpenAI's end of a stream",
      {
        type: 'response.completed',
        response: {
          input_transformations: [
            { type: 'reasoning', id: 'rs_1', action: 'removed', reason: 'prefix_mismatch' },
            { type: 'reasoning', id: 'rs_2', action: 'kept' },
          ],
        },
      },
      { dropped: 1, allowed: 0 },
    ],
    [
      "OpenAI's end of a turn",
      { response: { input_transformations: [{ type: 'reasoning', action: 'removed', reason: 'turn_boundary' }] } },
      { dropped: 0, allowed: 0 },
    ],
    [
      "Pi's message of an answer of OpenAI",
      {
        role: 'assistant',
        diagnostics: [
          {
            type: 'openai_input_transformations',
            details: { transformations: [{ type: 'reasoning', id: 'rs_1', action: 'removed', reason: 'prefix_mismatch' }] },
          },
        ],
      },
      { dropped: 1, allowed: 0 },
    ],
    [
      "Pi's message",
      { role: 'assistant', diagnostics: [{ type: 'x' }, { type: 'anthropic_input_transformations', details: { transformations: [dropped] } }] },
      { dropped: 1, allowed: 0 },
    ],
    ["Pi's message without any", { role: 'assistant', diagnostics: [] }, undefined],
    ['a change of the model', [{ type: 'thinking_dropped', reason: 'model_binding_mismatch' }], { dropped: 0, allowed: 0 }],
    ['an answer that says nothing', { content: [] }, undefined],
    ['nothing', undefined, undefined],
  ])('%s is read', (_, answer, report) => {
    expect(readReport(answer)).toEqual(report)
  })

  test('report_corrects_table_for_its_model', () => {
    const observed = new ObservedBinding()
    expect(observed.binding('a', 'refuses')).toBe('refuses')
    observed.answered('a', [allowed])
    expect(observed.binding('a', 'refuses')).toBe('keeps')
    observed.answered('a', [])
    expect(observed.binding('a', 'refuses')).toBe('keeps')
    observed.answered('a', [dropped])
    expect(observed.binding('a', 'none')).toBe('drops')
    observed.refused('a')
    expect(observed.binding('a', 'drops')).toBe('refuses')
    expect(observed.binding('b', 'none')).toBe('none')
  })

  const SENTENCE = 'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block.'
  test.each<[string, unknown, boolean]>([
    ['the sentence', SENTENCE, true],
    ['an error', new Error(`400 ${SENTENCE}`), true],
    ['an error inside', { status: 400, error: { type: 'error', error: { message: SENTENCE } } }, true],
    ['a cause', new Error('failed', { cause: new Error(SENTENCE) }), true],
    ["the AI SDK's body", { responseBody: JSON.stringify({ error: { message: SENTENCE } }) }, true],
    ["Pi's message", { role: 'assistant', stopReason: 'error', errorMessage: SENTENCE }, true],
    ['another 400', new Error('messages: text content blocks must be non-empty'), false],
    ['nothing', undefined, false],
  ])('%s is told as a refusal: %s', (_, error, is) => {
    expect(isBindingRefusal(error)).toBe(is)
  })
})

describe('requests', () => {
  test.each<[unknown, Binding | undefined]>([
    [{ thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } }, 'drops'],
    [{ thinking: { block_binding: { prefix_mismatch_behavior: 'error' } } }, 'refuses'],
    [{ additionalModelRequestFields: { thinking: { block_binding: { prefix_mismatch_behavior: 'drop_block' } } } }, 'drops'],
    [{ anthropic: { thinking: { blockBinding: { prefixMismatchBehavior: 'drop_block' } } } }, 'drops'],
    [{ bedrock: { reasoningConfig: { type: 'enabled', blockBinding: { prefixMismatchBehavior: 'error' } } } }, 'refuses'],
    [{ thinking: { type: 'adaptive' } }, undefined],
    [undefined, undefined],
  ])('%o asks for %s', (body, binding) => {
    expect(askedOf(body)).toBe(binding)
  })

  test('drops_are_asked_for_unless_thinking_is_off', () => {
    expect(askedOf(askingForDrops({ model: 'm' }))).toBe('drops')
    expect(askingForDrops({ thinking: { type: 'enabled', budget_tokens: 5 } })).toEqual({
      thinking: { type: 'enabled', budget_tokens: 5, block_binding: { prefix_mismatch_behavior: 'drop_block' } },
    })
    expect(askingForDrops({ thinking: { type: 'disabled' } })).toBeUndefined()
    expect(withBindingBeta('a, b')).toBe(`a,b,${BINDING_BETA}`)
    expect(withBindingBeta(BINDING_BETA)).toBe(BINDING_BETA)
    expect(withBindingBeta(undefined)).toBe(BINDING_BETA)
  })
})

describe('withheld reasoning', () => {
  const thought = { type: 'thinking', thinking: 'hm', signature: 's1' }
  const text = { type: 'text', text: 'x' }

  test.each<[string, object[], object[]]>([
    ['anthropic', [{ role: 'assistant', content: [thought, text] }], [{ role: 'assistant', content: [text] }]],
    ['redacted', [{ role: 'assistant', content: [{ type: 'redacted_thinking', data: 'd' }, text] }], [{ role: 'assistant', content: [text] }]],
    ['pi', [{ role: 'assistant', content: [{ type: 'thinking', thinking: '', thinkingSignature: 's' }, text] }], [{ role: 'assistant', content: [text] }]],
    ['responses', [{ type: 'reasoning', id: 'rs', encrypted_content: 'e' }, { type: 'function_call' }], [{ type: 'function_call' }]],
    [
      'ai-sdk',
      [{ role: 'assistant', content: [{ type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 's' } } }, text] }],
      [{ role: 'assistant', content: [text] }],
    ],
    ['opencode', [{ info: {}, parts: [{ type: 'reasoning', text: 'hm', metadata: {} }, text] }], [{ info: {}, parts: [text] }]],
    [
      'nothing else',
      [
        { role: 'assistant', content: [thought] },
        { role: 'user', content: 'continue' },
      ],
      [{ role: 'user', content: 'continue' }],
    ],
  ])('%s: reasoning stays out and the rest stays', (_, messages, left) => {
    const given = structuredClone(messages)
    const withheld = new Withheld()
    expect(withheld.without(messages)).toEqual(given)
    expect(withheld.add(messages)).toBe(1)
    expect(withheld.add(messages)).toBe(0)
    expect(withheld.without(messages)).toEqual(left)
    expect(messages).toEqual(given)
  })

  test('later_reasoning_is_not_withheld', () => {
    const withheld = new Withheld()
    withheld.add([{ role: 'assistant', content: [thought] }])
    const later = { role: 'assistant', content: [{ ...thought, signature: 's2' }] }
    expect(withheld.without([later])).toEqual([later])
  })
})
