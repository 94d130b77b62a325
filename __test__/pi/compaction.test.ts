/** Pi's compaction: by hand, at the threshold, at an overflow, between two prompts and in the middle of a turn. */
import { afterEach, describe, expect, test } from 'vitest'
import { checkAllToolPairs, checkAppendOnly, checkToolPairs, checkUserMessages } from '../../rig/checks.ts'
import { cleanUp, readSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Reply } from '../../rig/reply.ts'
import { lastOf, resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { command, lines, notices, OUTPUTS_ONLY, put, setsOf, setUp, shortened, TOOLS_AT_ONCE } from './support.ts'

afterEach(cleanUp)

describe('between prompts', () => {
  const settings = { compaction: { keepRecentTokens: 2000 } }

  test('by hand: the summary is made from texts, not from references; the rest stays and can be had', async () => {
    const { server, home, store, load } = await setUp(
      (request, n) => {
        if (request.kind === 'summary') return 'SUMMARY'
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'])
        if (lastOf(request, 'user')!.text === 'back' && request.messages.at(-1)!.role === 'user') {
          return calls(['search_context', { query: 'lorem' }, 'call_search'], ['activate', { id: 'call_a' }, 'call_back'])
        }
        return lines(`answer ${n}`, 150)
      },
      { context: TOOLS_AT_ONCE, settings },
    )
    put(home, 'a.txt', lines('a', 60))
    const rpc = await startRpc(load)
    for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
    await command(rpc, '/context roll')
    await rpc.command({ type: 'compact' })
    const summaries = server.requests.filter((request) => request.kind === 'summary')
    expect(summaries.length).toBeGreaterThan(0)
    expect(summaries[0]!.prompt).toContain('a line 3: lorem')
    const from = server.requests.length
    await rpc.prompt('five')
    await rpc.prompt('back')
    const { sessionId } = await rpc.state()
    await rpc.close()
    const after = server.requests.slice(from)
    checkAllToolPairs(after)
    checkAppendOnly(after)
    expect(after[0]!.prompt).toContain('SUMMARY')
    expect(resultsById(after.at(-1)!).get('call_back')).toContain(lines('a', 60))
    const hits = resultsById(after.at(-1)!).get('call_search')!.split('\n')
    expect(hits.filter((line) => /^id=\w+ tool=read line=\d+: .*lorem/.test(line))).toHaveLength(1)
    expect(hits.filter((line) => /^id=\w+ path=\S+a\.txt line=\d+: .*lorem/.test(line))).toHaveLength(1)
    expect(notices(rpc.events).filter((text) => !text.startsWith('Rolled'))).toEqual([])
    expect((await setsOf(store, sessionId, home.cwd)).sessionIndex).toContain('call_a')
  })

  test('at the threshold: a roll makes the room, and nothing is summarized', async () => {
    const { server, home, load } = await setUp(
      (request, n) => {
        if (request.kind === 'summary') return 'SUMMARY'
        return n % 2 === 0 ? calls(['read', { path: `f${n}.txt` }, `call_${n}`]) : `answer ${n}`
      },
      { contextWindow: 32_000, settings },
    )
    for (let n = 0; n < 30; n += 2) put(home, `f${n}.txt`, lines(`f${n}`, 100))
    const rpc = await startRpc(load)
    for (let round = 0; round < 15; round += 1) await rpc.prompt(`round ${round}`)
    expect(server.requests.filter((request) => request.kind === 'summary')).toEqual([])
    expect(notices(rpc.events)).toEqual([])
  })

  test('at an overflow: Pi compacts and continues', async () => {
    const sentence = 'prompt is too long: 210000 tokens > 200000 maximum'
    const { server, home, load } = await setUp(
      (request, n) => {
        if (request.kind === 'summary') return 'SUMMARY'
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'])
        if (n === 3) return { status: 400, error: sentence }
        return lines(`answer ${n}`, 150)
      },
      { settings },
    )
    put(home, 'a.txt', lines('a', 60))
    const rpc = await startRpc(load)
    for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
    expect(server.requests.some((request) => request.kind === 'summary')).toBe(true)
    const last = server.agentRequests.at(-1)!
    expect(last.prompt).toContain('SUMMARY')
    checkUserMessages(last, ['three', 'four'])
    expect(notices(rpc.events)).toEqual([])
  })
})

/** Outputs of the turn that Pi compacts. */
const STEPS = 24

/** Of them, those that are so large that three of them leave too little room: Pi compacts, and later once more. */
const isLarge = (n: number): boolean => n < 6 || n >= STEPS - 6

describe('in the middle of a turn', () => {
  test.each<['threshold' | 'overflow', Api]>([
    ['threshold', 'openai-completions'],
    ['threshold', 'anthropic-messages'],
    ['overflow', 'openai-completions'],
    ['overflow', 'openai-responses'],
  ])('%s, %s: the prefix holds, rolls continue, and every output can be restored', async (reason, api) => {
    const byThreshold = reason === 'threshold'
    const texts = Array.from({ length: STEPS }, (_, n) => lines(`f${n}`, byThreshold ? (isLarge(n) ? 700 : 60) : 300))
    const ids = new Map<string, string>()
    let step = 0
    let overflowed = byThreshold
    const { server, home, load } = await setUp(
      (request) => {
        if (request.kind === 'summary') return 'SUMMARY'
        for (const [call, text] of resultsById(request)) {
          const id = /^id=(\w+)\n/.exec(text)?.[1]
          if (id !== undefined) ids.set(call, id)
        }
        const asked = /^back (\d+)/.exec(lastOf(request, 'user')!.text)?.[1]
        if (asked !== undefined) {
          if (request.messages.at(-1)!.role === 'tool') return 'There it is.'
          return calls(['read', { path: `id=${ids.get(`call_${asked}`) ?? `call_${asked}`}` }, `back_${asked}`])
        }
        if (!overflowed && step === STEPS / 4) {
          overflowed = true
          return { status: 400, error: 'prompt is too long: 210000 tokens > 200000 maximum' }
        }
        if (step === STEPS) return 'done'
        const [path, call] = [`f${step}.txt`, `call_${step}`]
        step += 1
        return calls(isLarge(step - 1) ? ['read', { path }, call] : ['bash', { command: `cat ${path}` }, call])
      },
      {
        api,
        contextWindow: byThreshold ? 30_000 : 200_000,
        settings: { compaction: { keepRecentTokens: byThreshold ? 6000 : 1000 } },
        // On a model that binds its reasoning, nothing would roll in the middle of a turn.
        context: { ...OUTPUTS_ONLY, binding: 'none' },
      },
    )
    for (const [n, text] of texts.entries()) put(home, `f${n}.txt`, text)
    const rpc = await startRpc(load)
    const events = await rpc.prompt('look at everything')
    const turn = server.requests.slice()
    for (let n = 0; n < STEPS; n += 1) await rpc.prompt(`back ${n}`)
    const { sessionFile } = await rpc.state()
    expect(await rpc.close()).toEqual({ code: 0, signal: null })

    // Pi has compacted inside of the turn, without an error, and the agent went on calling tools.
    const first = turn.findIndex((request) => request.kind === 'summary')
    expect(first).toBeGreaterThan(0)
    expect(turn.slice(first).filter((request) => request.messages.at(-1)!.role === 'tool').length).toBeGreaterThan(4)
    expect(events.filter((event) => event.type === 'compaction_end' && event['result'] != null)).not.toEqual([])
    expect(rpc.events.filter((event) => event['errorMessage'] !== undefined)).toEqual([])
    expect(rpc.events.filter((event) => event.type === 'extension_error' || event.type === 'not_json')).toEqual([])
    expect(notices(rpc.events)).toEqual([])
    expect(rpc.process.stderr).toBe('')

    // A summary is made from texts, those of rolled outputs included.
    const summaries = server.requests.filter((request) => request.kind === 'summary')
    expect(summaries.some((request) => request.prompt.includes('f0 line 1: lorem'))).toBe(true)
    for (const summary of summaries) expect(summary.prompt).not.toContain('toolcall_ref')

    // From one request to the next outputs become shorter, in half of them at most, and nothing else changes.
    const rolls: number[] = []
    for (const request of server.agentRequests) {
      checkToolPairs(request)
      const before = server.requests[request.n - 1]
      if (before === undefined || before.kind === 'summary') continue
      if (shortened(before, request).length > 0) rolls.push(request.n)
      else checkAppendOnly([before, request])
    }
    expect(rolls.filter((n) => n > first && (n < turn.length || !byThreshold))).not.toEqual([])
    expect(rolls.filter((n) => n < turn.length).length).toBeLessThanOrEqual(STEPS / 2)

    // Nothing that a compaction removed is edited after it.
    const { entries } = readSession(sessionFile)
    const at = (id: string): number => entries.findIndex((entry) => entry.id === id)
    for (const compaction of entries.filter((entry) => entry.type === 'compaction')) {
      const edits = entries.slice(at(compaction.id)).filter((entry) => entry.type === 'context_edit')
      expect(edits.filter((edit) => at(edit['targetId']) < at(compaction['firstKeptEntryId']))).toEqual([])
    }

    for (const [n, text] of texts.entries()) {
      const shown = server.agentRequests.map((request) => resultsById(request).get(`back_${n}`))
      const first = shown.find((one) => one !== undefined)
      // Pi may summarize a result before its model has seen it.
      if (first === undefined) expect(summaries.some(({ prompt }) => prompt.includes(`f${n} line 1: `))).toBe(true)
      else expect(first).toBe(`id=${ids.get(`back_${n}`)}\n${text}`)
    }
  })
})

/** Answers a prompt with the calls for it, one answer after the other. */
function byPrompt(rounds: Record<string, (request: ModelRequest) => Reply>): (request: ModelRequest, n: number) => Reply | string {
  const done = new Set<string>()
  return (request, n) => {
    if (request.kind === 'summary') return 'so far'
    const prompt = request.messages.findLast(({ role, text }) => role === 'user' && rounds[text.trim()] !== undefined)?.text.trim() ?? ''
    if (done.has(prompt) || rounds[prompt] === undefined) return `answer ${n}`
    done.add(prompt)
    return rounds[prompt](request)
  }
}

test('answers that point to a text stay unchanged when it has left, and say what to do then', async () => {
  const { server, home, load } = await setUp(
    byPrompt({
      go: () => calls(['read', { path: 'a.txt' }, 'first']),
      again: () => calls(['activate', { id: 'first' }, 'activated'], ['read', { path: 'a.txt' }, 'answered']),
      long: () => calls(['bash', { command: 'seq 1 400' }, 'long']),
    }),
    { context: TOOLS_AT_ONCE, settings: { compaction: { keepRecentTokens: 900 } } },
  )
  put(home, 'a.txt', lines('first', 60))
  const rpc = await startRpc(load)
  for (const prompt of ['go', 'again', 'long']) await rpc.prompt(prompt)
  const before = resultsById(server.requests.at(-1)!)
  expect(before.get('activated')).toMatch(/; its text is in the result id=\w+; activate it again if gone$/)
  expect(before.get('answered')).toMatch(/^(id=\w+\n)?unchanged: lines 1-\d+ of \S+ are as in the result id=\w+; read them again if gone$/)
  await rpc.command({ type: 'compact' })
  await rpc.prompt('more')
  await rpc.prompt('and more')
  const after = resultsById(server.requests.at(-1)!)
  expect(after.has('first')).toBe(false)
  for (const call of ['activated', 'answered']) expect(after.get(call)).toBe(before.get(call))
})
