import { mkdtempSync, readFileSync, existsSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ARMS, capture } from '../../lab/likelihood/capture.ts'
import { answerPieces, requestText } from '../../lab/likelihood/chat.ts'
import { answersOf, costOf, unitsOf } from '../../lab/likelihood/costs.ts'
import { onlyHidden } from '../../lab/likelihood/hidden.ts'
import { Llama } from '../../lab/likelihood/llama.ts'
import { measure } from '../../lab/likelihood/measure.ts'
import type { Line } from '../../lab/likelihood/measure.ts'
import { Onnx } from '../../lab/likelihood/onnx.ts'
import { bootstrap, changeOf, comparedWith, figuresOf, merged, meterOf, reachOf } from '../../lab/likelihood/table.ts'

const CACHE = process.env['CONTEXT_LIKELIHOOD'] ?? join(homedir(), '.cache/pi-context-manager-lab')
const MODEL = join(CACHE, 'qwen2.5-coder-0.5b.gguf')

describe('names and quotes that only hidden text has', () => {
  const full = 'the function parse_duration in utils/dates.py\nreturn value / 1_000_000 + offset\nof 12 lines'
  const rows: [name: string, answer: string, sent: string, found: string[]][] = [
    ['a name of the hidden text', 'I look at parse_duration now', 'the function', ['parse_duration']],
    ['a path, with the full stop of a sentence outside', 'see utils/dates.py.', 'the function', ['utils/dates.py']],
    ['a line that is quoted whole', 'x\n  return value / 1_000_000 + offset', 'the function', ['return value / 1_000_000 + offset']],
    ['words that the request still has', 'the function parse_duration', full.slice(0, 30), []],
    ['words that no request has', 'a new idea: frobnicate', 'the function', []],
    ['short words', 'of 12', 'the function', []],
    ['a word that any text could have', 'I return a value', 'the function', []],
    [
      'a name behind an escaped line break',
      String.raw`{"command":"cat\nparse_duration\nutils/dates.py"}`,
      'the function',
      ['parse_duration', 'utils/dates.py'],
    ],
  ]
  test.each(rows)('%s', (_, answer, sent, found) => {
    expect(onlyHidden(answer, full, sent).map(({ from, to }) => answer.slice(from, to))).toEqual(found)
  })

  test('the full request hides nothing', () => {
    expect(onlyHidden('parse_duration', full, full)).toEqual([])
  })
})

test('a request becomes a conversation of turns, and the parts of an answer keep their order', () => {
  const block = (role: string, content: object) => ({ bytes: JSON.stringify([role, content]), units: 0, label: '', texts: [] })
  const answer = [
    block('assistant', { type: 'thinking', thinking: 'hm' }),
    block('assistant', { type: 'text', text: 'I look.' }),
    block('assistant', { type: 'tool_use', id: 'a', name: 'bash', input: { command: 'ls' } }),
  ]
  const result = block('user', { type: 'tool_result', id: 'a', content: [{ type: 'text', text: 'README.md' }] })
  const text = requestText([block('user', { type: 'text', text: 'Hello' }), ...answer, result])
  expect(text).toMatch(/<\|im_start\|>user\nHello\n<\|im_end\|>\n<\|im_start\|>assistant\nhm\n\nI look\.\n<tool_call>/)
  expect(text).toMatch(/<tool_response>\nREADME\.md\n<\/tool_response>\n<\|im_end\|>\n<\|im_start\|>assistant\n$/)
  expect(answerPieces(answer).map(({ part }) => part)).toEqual(['thinking', 'text', 'calls'])
})

test('a request pays the price of a read for its common part with the one before, and that of a write for the rest', () => {
  const captured = ['abc', 'abcdef', 'abX'].map((request) => ({ request, pieces: [] }))
  expect(unitsOf(captured)).toEqual({ cached: 5, written: 7 })
  expect(costOf({ cached: 5, written: 7 }, { read: 0.1, write: 1.25 })).toBeCloseTo(9.25)
  // The request of an arm may be longer than the full one until something is hidden.
  const full = ['ab', 'abcd', 'abcdef'].map((request) => ({ request, pieces: [] }))
  expect(answersOf(captured, full)).toEqual({ answers: 3, changed: 1 })
})

test('figures are means over answers, and the interval is one over sessions', () => {
  const line = (answer: number, nats: number): Line => ({
    arm: 'rule',
    answer,
    prompt: 50,
    full: 100,
    parts: { calls: { tokens: 10, nats: 20 + nats } },
    fullParts: { calls: { tokens: 10, nats: 20 } },
    hidden: { tokens: 2, nats: nats / 2, fullNats: 0 },
  })
  const costs = {
    full: { cached: 1000, written: 100, answers: 7, changed: 0 },
    rule: { cached: 400, written: 120, answers: 7, changed: 5 },
  }
  const runs = [
    { run: 'a', lines: [line(1, 10), line(2, 2)], costs },
    { run: 'b', lines: [line(5, 0)], costs },
  ]
  const figures = figuresOf('rule', runs, { read: 0.1, write: 1.25 })
  expect(figures).toMatchObject({ runs: 2, answers: 3, prompt: 0.5, full: 20, tokens: 10, median: 2, hiddenShare: 0.5 })
  expect(figures?.nats.value).toBeCloseTo(4)
  expect(figures?.nats.low).toBeCloseTo(0)
  expect(figures?.nats.high).toBeCloseTo(6)
  expect(figures?.cost).toBeCloseTo((40 + 150) / (100 + 125))
  expect(figures?.worse).toBeCloseTo(1 / 3)
  expect(figuresOf('mask', runs, { read: 0.1, write: 1.25 })).toBeUndefined()
  expect(changeOf(line(1, 3))).toBeCloseTo(3)
  expect(bootstrap([{ sum: 5, count: 1 }])).toEqual({ value: 5, low: 5, high: 5 })
  expect(reachOf('rule', runs)).toEqual({ sessions: 2, rolled: 2, answers: 14, changed: 10 })
  const missed = { ...costs, rule: { ...costs.rule, missed: { 1: { strong: 2, harms: 1 } } } }
  const metered = meterOf('rule', [{ ...runs[0]!, costs: missed }, runs[1]!])
  expect(metered.kinds).toEqual({
    'probable harm': { answers: 1, nats: 10, share: 10 / 12 },
    'other missed uses': { answers: 0, nats: 0, share: 0 },
    none: { answers: 2, nats: 1, share: 2 / 12 },
  })
  // Ranks 3, 2, 1 beside 3, 1.5, 1.5.
  expect(metered.correlation).toBeCloseTo(Math.sqrt(3) / 2)
  // Measured again: the new lines of an answer replace the old ones, and everything else stays.
  const again = merged(runs, [{ run: 'a', lines: [line(2, 7), line(3, 1)], costs: { rule: costs.rule } }])
  expect(again.map(({ lines }) => lines.map((one) => [one.answer, changeOf(one)]))).toEqual([
    [
      [1, 10],
      [2, 7],
      [3, 1],
    ],
    [[5, 0]],
  ])
  expect(again[0]?.costs).toEqual(costs)
})

test('two arms are compared on the answers that both have measured', () => {
  const line = (arm: string, answer: number, nats: number, prompt = 50): Line => ({
    arm,
    answer,
    prompt,
    full: 100,
    parts: { text: { tokens: 10, nats: 20 + nats } },
    fullParts: { text: { tokens: 10, nats: 20 } },
  })
  const costs = {
    full: { cached: 1000, written: 80, answers: 7, changed: 0 },
    rule: { cached: 400, written: 80, answers: 7, changed: 3 },
    age: { cached: 500, written: 80, answers: 7, changed: 3 },
  }
  const runs = [
    { run: 'a', lines: [line('rule', 1, 10), line('age', 1, 14, 60), line('rule', 2, 2), line('age', 2, 0, 40), line('age', 3, 90)], costs },
    { run: 'b', lines: [line('rule', 5, 0), line('age', 5, 1)], costs },
    { run: 'c', lines: [line('rule', 1, 50)], costs },
  ]
  expect(comparedWith('rule', 'age', runs, { read: 0.1, write: 1.25 })).toEqual({
    arm: 'age',
    runs: 2,
    answers: 3,
    prompts: [0.5, 0.5],
    costs: [140 / 200, 150 / 200],
    nats: [4, 5],
    more: { value: 1, low: 1, high: 1 },
    worse: 0,
    better: 0,
  })
  expect(comparedWith('rule', 'weight 1', runs, { read: 0.1, write: 1.25 })).toBeUndefined()
})

test('each arm has a request for each answer, and hiding by age keeps to the size of the arm that it is like', async () => {
  const captured = await capture('fixtures/sessions/claude-code.jsonl', ARMS)
  const sizes = (arm: string) => captured.get(arm)?.map(({ request }) => request.length) ?? []
  expect(sizes('full').length).toBeGreaterThan(2)
  for (const { name } of ARMS) expect(sizes(name)).toHaveLength(sizes('full').length)
})

const GRAPH = join(CACHE, 'qwen2.5-coder-0.5b.onnx')
const OPTIONS = { tools: join(CACHE, 'engine'), model: MODEL, context: 2048, threads: 1 }

// The model has 490 MB, and its graph 1.1 GB: they are measured where they have been downloaded and made.
test.skipIf(!existsSync(GRAPH))(
  'both engines find about the same nats, also behind a prefix that is in the cache',
  async () => {
    const llama = new Llama(OPTIONS)
    const onnx = new Onnx({ ...OPTIONS, graph: GRAPH, python: join(CACHE, 'python/bin/python') })
    const text = readFileSync('lab/likelihood/hidden.ts', 'utf8').slice(0, 2000)
    const tokens = onnx.tokenize(text, false)
    expect(tokens).toEqual(llama.tokenize(text, false))
    for (const from of [300, 200, 250]) {
      const [answer, prompt] = [tokens.slice(from, from + 100), tokens.slice(0, from)]
      const [one, other] = [await llama.nats(prompt, answer), await onnx.nats(prompt, answer)]
      const sum = (nats: Float32Array) => nats.reduce((all, value) => all + value, 0)
      expect(Math.abs(sum(other) / sum(one) - 1)).toBeLessThan(0.05)
    }
    // The second and third prompt are prefixes of what is in the cache, so that only their last token and the answer are decoded.
    expect(onnx.decoded).toBe(400 + 101 + 101)
    onnx.close()
  },
  120_000,
)

describe.skipIf(!existsSync(MODEL))('with the smallest model', () => {
  const open = () => new Llama(OPTIONS)

  test('text that the request holds costs less than the same text after it was hidden, and a second run measures nothing anew', async () => {
    const engine = open()
    const secret = 'The token is kf83-zz91-qq07.'
    const pieces = [{ part: 'text' as const, text: 'kf83-zz91-qq07' }]
    const request = (text: string) => `<|im_start|>user\n${text}\nRepeat the token.<|im_end|>\n<|im_start|>assistant\n`
    const full = {
      arm: { name: 'full', policy: 'append' as const },
      captured: [
        { request: request(secret), pieces },
        { request: request(`${secret} `), pieces },
      ],
    }
    const mask = {
      arm: { name: 'mask', policy: 'mask' as const },
      captured: [
        { request: request('[...]'), pieces },
        { request: request('[....]'), pieces },
      ],
    }
    const file = join(mkdtempSync(join(tmpdir(), 'likelihood-')), 'run.jsonl')
    const task = { file, arms: [full, mask], limit: 1500, progress: () => {} }
    await measure(engine, task)
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as Line)
    expect(lines.map(({ arm, answer }) => `${arm} ${answer}`)).toEqual(['full 0', 'full 1', 'mask 0', 'mask 1'])
    for (const line of lines.slice(2)) {
      expect(changeOf(line)).toBeGreaterThan(10)
      expect(line.hidden?.tokens).toBeGreaterThan(5)
    }
    // A run that was stopped in the middle of a line continues with this line.
    const kept = readFileSync(file, 'utf8').split('\n').slice(0, 3).join('\n')
    writeFileSync(file, `${kept}\n{"arm":"mask","ans`)
    const before = engine.decoded
    await measure(engine, task)
    expect(engine.decoded - before).toBeLessThan(200)
    const again = readFileSync(file, 'utf8')
      .split('\n')
      .filter((text) => text !== '')
      .map((text) => JSON.parse(text) as Line)
    expect(again.map(({ arm, answer }) => `${arm} ${answer}`)).toEqual(['full 0', 'full 1', 'mask 0', 'mask 1'])
  }, 120_000)
})
