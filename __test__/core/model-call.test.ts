import { describe, expect, test } from 'vitest'
import type { ModelCall } from '../../lib/index.ts'
import { folder, modelCall, opened } from './setup.ts'

describe('the circumstances of a model call', () => {
  const said = { key: 'k', message: { role: 'user', content: 'hello', timestamp: 1 } }

  test.each<[string, Partial<ModelCall> | object, string]>([
    ['an unknown binding', { binding: 'maybe' }, "'none', 'keeps', 'drops' or 'refuses'"],
    ['two kinds of caches at once', { lookbackBlocks: 20, lookbackEndings: 20 }, 'lookbackBlocks or lookbackEndings'],
  ])('%s is refused, and nothing is recorded', async (_, wrong, message) => {
    const manager = await opened({ cwd: folder() })
    const refused = manager.advance([said], { ...modelCall, ...wrong })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) })
    expect((await manager.get('chat:s'))?.['turns']).toEqual([])
  })

  test('binding, steps in price and endings are taken', async () => {
    const manager = await opened({ cwd: folder() })
    const prices = { ...modelCall.prices, tiers: [{ inputTokensAbove: 100_000, factor: 5 }] }
    const plan = await manager.advance([said], { ...modelCall, prices, binding: 'refuses', lookbackEndings: 20, textIsReasoning: true })
    expect(plan.edits).toEqual([])
  })
})
