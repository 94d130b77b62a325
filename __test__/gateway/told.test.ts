/** Facts about models that the user gives, against those of the table. */
import { expect, test } from 'vitest'
import { modelOf, withBinding } from '../../lib/gateway/models.ts'
import type { ModelOverrides } from '../../lib/gateway/models.ts'
import type { ModelRequest } from '../../lib/gateway/request.ts'

const request = (model: string): ModelRequest => {
  const body = { model, messages: [], thinking: { type: 'enabled', budget_tokens: 1_024 } }
  return { api: 'messages', model, body, messages: [], systemTokens: 0, hasTools: true, canRecall: true, isPlainRecall: false } as unknown as ModelRequest
}

/** A model that refuses a changed past by the table, and one that does not. */
const [KNOWN, OTHER] = ['claude-opus-5-5', 'claude-sonnet-4-5']

test.each<[name: string, model: string, told: ModelOverrides, asks: boolean]>([
  ['the table', KNOWN, {}, true],
  ['the user, who says otherwise', KNOWN, { [KNOWN]: { binding: 'none' } }, false],
  ['the user on something else', KNOWN, { [KNOWN]: { input: 1 } }, true],
  ['the table for another model', OTHER, {}, false],
  ['the user alone', OTHER, { [OTHER]: { binding: 'refuses' } }, true],
])('%s decides whether a provider is asked to drop reasoning', (_, model, told, asks) => {
  const own = request(model)
  const { body, headers } = withBinding(own, own.body, [], told)
  expect([body !== own.body, headers.length > 0]).toEqual([asks, asks])
})

test('how far back a provider looks is what the user says', () => {
  expect(modelOf(request('gpt-5.6')).lookbackEndings).toBeDefined()
  expect(modelOf(request(OTHER)).lookbackEndings).toBeUndefined()
  expect(modelOf(request(OTHER), { [OTHER]: { lookbackEndings: 20 } }).lookbackEndings).toBe(20)
})
