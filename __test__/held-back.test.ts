/** Why text stays, in words, and through a gateway. */
import { afterEach, describe, expect, test } from 'vitest'
import { summaryOf } from '../lib/cli/gateway-summary.ts'
import { heldStatus, heldText } from '../lib/ui/held-back.ts'
import type { Held } from '../lib/ui/held-back.ts'
import { mostHeld } from '../lib/gateway/held.ts'
import { AnthropicLoop, long, looping } from './gateway/support.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const held = (more: Partial<Held>): Held => ({ tokens: 180_000, because: 'dear', model: 'claude-opus-5-5', ...more })

describe('words', () => {
  test.each<[Partial<Held>, sentence: string, status: string | undefined]>([
    [
      { because: 'bound', chance: 'pause', pauseMs: 300_000 },
      '180k tokens are held back: claude-opus-5-5 would lose its reasoning; next chance: your next prompt after 5 minutes',
      '180k held back (reasoning) until your next prompt after 5 minutes',
    ],
    [
      { because: 'reasoning', chance: 'pause', pauseMs: 3_600_000, model: '' },
      '180k tokens are held back: the model would lose its reasoning; next chance: your next prompt after 1 hour',
      '180k held back (reasoning) until your next prompt after 1 hour',
    ],
    [
      { because: 'turn', chance: 'prompt' },
      '180k tokens are held back: they leave only when you speak, as you have set; next chance: your next prompt',
      '180k held back (your setting) until your next prompt',
    ],
    [
      { chance: 'calls', calls: 12 },
      '180k tokens are held back: what comes after them would have to be written to the cache again, and that costs more than they do so far; next chance: in about 12 calls',
      '180k held back (cached), in about 12 calls',
    ],
    [
      { because: 'debt', chance: 'calls', calls: 1 },
      '180k tokens are held back: a roll would cost more than it may in a session of this size; next chance: in about 1 call',
      '180k held back (cost so far), in about 1 call',
    ],
    [{ because: 'reasoning' }, '180k tokens are held back: claude-opus-5-5 would lose its reasoning', '180k held back (reasoning)'],
    [
      { because: 'young', chance: 'calls', calls: 9 },
      '180k tokens are held back: most of them are likely to be needed again soon; next chance: in about 9 calls',
      undefined,
    ],
    [{ because: 'unseen', chance: 'calls', calls: 1 }, '180k tokens are held back: the model has not seen them yet; next chance: in about 1 call', undefined],
    [{ because: 'due', chance: 'call' }, '180k tokens leave with the next call', undefined],
    [{ because: 'off' }, '180k tokens are held back: collapsing is switched off', undefined],
    [{ because: 'off', lacksRecall: true }, '180k tokens are held back: the model has no tool to bring text back', '180k held back (no tool to bring it back)'],
    [
      { because: 'bound', chance: 'prompt', tokens: 19_999 },
      '20k tokens are held back: claude-opus-5-5 would lose its reasoning; next chance: your next prompt',
      undefined,
    ],
  ])('%j', (more, sentence, status) => {
    expect([heldText(held(more)), heldStatus(held(more))]).toEqual([sentence, status])
  })
})

describe('a gateway says why nothing leaves', () => {
  const work = async (loop: AnthropicLoop, calls: number): Promise<void> => {
    for (let n = 0; n < calls; n += 1) await loop.call('Bash', { command: `cat n${loop.calls}` }, long(`n${loop.calls}`))
  }

  test.each<[string, (loop: AnthropicLoop) => void, because: Held['because'], sentence: RegExp]>([
    [
      'reasoning that is bound',
      (loop) => Object.assign(loop, { model: 'claude-opus-5-5', thinks: true, more: { thinking: { type: 'enabled', budget_tokens: 1000 } } }),
      'bound',
      /^\d+k tokens are held back: claude-opus-5-5 would lose its reasoning; next chance: your next prompt/,
    ],
    [
      'no tool to bring text back',
      (loop) => (loop.tools = loop.tools.slice(0, 3)),
      'off',
      /^\d+k tokens are held back: the model has no tool to bring text back$/,
    ],
  ])('%s', async (_name, set, because, sentence) => {
    const { gateway, loop } = await looping()
    set(loop)
    await work(loop, 20)
    const found = await mostHeld(gateway.conversations.all)
    expect([found?.because, heldText(found!)]).toEqual([because, expect.stringMatching(sentence)])
    // 120 lines of some 60 characters each.
    expect(found!.tokens).toBeGreaterThan(15_000)
    expect(summaryOf(gateway.ledger, found)).toEqual([`pi-context-manager: 20 requests of Claude Code, 0 rolls; nothing was saved. ${heldText(found!)}`])
  })

  test('text announced to leave at the next prompt leaves there, and asking changes no request', async () => {
    let now = 1_700_000_000_000
    const sent = await Promise.all(
      [true, false].map(async (asks) => {
        const { server, gateway, loop } = await looping({ now: () => now })
        Object.assign(loop, { model: 'claude-opus-5-5', thinks: true, more: { thinking: { type: 'enabled', budget_tokens: 1000 } } })
        for (let n = 0; n < 20; n += 1) {
          await work(loop, 1)
          if (asks) await mostHeld(gateway.conversations.all)
        }
        return { server, gateway, loop }
      }),
    )
    now += 400_000
    const found = await mostHeld(sent[0]!.gateway.conversations.all)
    expect([found?.because, found?.chance]).toEqual(['bound', 'prompt'])
    for (const { loop } of sent) await loop.prompt('and now?')
    const [one, other] = sent.map(({ server }) => server.requests.map(({ messages }) => messages.map(({ json }) => json)))
    expect(one).toEqual(other)
    expect(one!.at(-1)!.join('')).toContain('toolcall_ref')
    expect(sent[0]!.gateway.ledger.sessions[0]!.rolls.length).toBe(1)
  })
})
