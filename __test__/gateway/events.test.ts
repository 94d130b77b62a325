/** Answers of any length: each byte is looked at once, and what is held has a limit. */
import { afterEach, describe, expect, test } from 'vitest'
import { AnswerReader } from '../../lib/gateway/answer.ts'
import { Gathered } from '../../lib/gateway/gather.ts'
import { KEPT_END, Lines, LONGEST_LINE } from '../../lib/gateway/lines.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { AnthropicLoop, gatewayTo, upstream } from './support.ts'

afterEach(cleanUp)

const MB = 1 << 20

/** The same bytes in pieces of a size. */
function* pieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Counts the bytes that are copied and searched while something runs. */
function counting<T>(run: () => T): { copied: number; searched: number; result: T } {
  const { copy, copyWithin, indexOf } = Buffer.prototype
  const counts = { copied: 0, searched: 0 }
  Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<typeof copy>) {
    const count = copy.apply(this, args)
    counts.copied += count
    return count
  }
  Buffer.prototype.copyWithin = function (this: Buffer, target: number, start: number, end: number = this.length) {
    counts.copied += end - start
    return copyWithin.call(this, target, start, end)
  }
  Buffer.prototype.indexOf = function (this: Buffer, ...args: any[]) {
    const found = (indexOf as (...given: any[]) => number).apply(this, args)
    const from = typeof args[1] === 'number' ? args[1] : 0
    counts.searched += (found < 0 ? this.length : found + 1) - from
    return found
  } as typeof indexOf
  try {
    const result = run()
    return { ...counts, result }
  } finally {
    Object.assign(Buffer.prototype, { copy, copyWithin, indexOf })
  }
}

describe('lines', () => {
  test.each([1, 2, 3, 7, 64, 1000])('in pieces of %i bytes equal a split of all', (size) => {
    const text = 'data: a\n\n: b\r\ndata: ü€𝄞\n\ndata:\r\rdata: c\r\n\r\n\n\rlast without end'
    const got: string[] = []
    const lines = new Lines(({ bytes, isWhole, beginning }) => {
      expect([isWhole, beginning]).toEqual([true, bytes.toString('latin1', 0, 8)])
      got.push(bytes.toString())
    }, true)
    for (const piece of pieces(Buffer.from(text), size)) lines.write(piece)
    lines.end()
    expect(got).toEqual(text.split(/\r\n|\r|\n/))
  })

  test.each([1, 4096, 65_536, 3 * MB])(
    'of one that is too long, in pieces of %i bytes, the beginning and the end are kept, and the next one is whole',
    (size) => {
      const end = 'x'.repeat(KEPT_END - 10) + '0123456789'
      for (const length of size === 1 ? [LONGEST_LINE + 1] : [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 2 * LONGEST_LINE]) {
        const long = Buffer.alloc(length, 'y')
        long.write('data: {"')
        long.write(end, length - end.length)
        const got: [boolean, number, string, string][] = []
        const lines = new Lines(
          ({ bytes, isWhole, beginning }) => got.push([isWhole, bytes.length, beginning, bytes.toString('latin1', Math.max(0, bytes.length - end.length))]),
          true,
        )
        for (const piece of pieces(Buffer.concat([long, Buffer.from('\ndata: 2\n')]), size)) lines.write(piece)
        lines.end()
        const isWhole = length <= LONGEST_LINE
        expect(got).toEqual([
          [isWhole, isWhole ? length : KEPT_END, 'data: {"', end],
          [true, 7, 'data: 2', 'data: 2'],
        ])
      }
    },
  )

  test('twice as much is twice the work, in pieces of any size, with and without ends of lines', () => {
    for (const [size, text] of [
      [1000, ''],
      [16_384, ''],
      [65_536, ''],
      [16_384, `${'z'.repeat(99)}\n`],
      [16_384, `${'z'.repeat(99_999)}\n`],
    ] as const) {
      const work = (length: number): number => {
        const bytes = text === '' ? Buffer.alloc(length, 'y') : Buffer.alloc(length, text)
        const { copied, searched } = counting(() => {
          const lines = new Lines(() => {}, true)
          for (const piece of pieces(bytes, size)) lines.write(piece)
          lines.end()
          return undefined
        })
        return copied + searched
      }
      // Up to 8 MB a line is copied while its buffer grows; beyond, only its end moves.
      for (const length of [4 * MB, 32 * MB]) expect(work(2 * length)).toBeLessThan(2.2 * work(length) + MB)
      // Each byte is looked at for both ends of a line.
      expect(work(64 * MB)).toBeLessThan(5 * 64 * MB)
    }
  })
})

describe('gathered events', () => {
  test('in single bytes takes a few copies of each', () => {
    const { copied, result } = counting(() => {
      const gathered = new Gathered()
      for (const piece of pieces(Buffer.alloc(MB, 'abc'), 1)) gathered.add(piece)
      return gathered
    })
    expect(result.bytes.equals(Buffer.alloc(MB, 'abc'))).toBe(true)
    expect(copied).toBeLessThan(4 * MB)
  })
})

/** Answers in the three formats, with a text before their figures. */
const USAGE = {
  messages: { input_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 7, output_tokens: 30 },
  responses: { input_tokens: 23, input_tokens_details: { cached_tokens: 11, cache_write_tokens: 7 }, output_tokens: 30 },
  chat: { prompt_tokens: 23, prompt_tokens_details: { cached_tokens: 11, cache_write_tokens: 7 }, completion_tokens: 30 },
} as const
const BILLED = { input: 5, cacheRead: 11, cacheWrite: 7, output: 30 }
const LARGE: [name: string, api: keyof typeof USAGE, answer: (text: string) => string][] = [
  [
    'the last event of Responses',
    'responses',
    (text) =>
      `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response: { output: [{ text }], usage: USAGE.responses, user: null, metadata: { note: '"usage":{"input_tokens":9}' } } })}\n\n`,
  ],
  [
    'an image in Responses, then the last event',
    'responses',
    (text) => `data: ${JSON.stringify({ type: 'image', text })}\n\ndata: ${JSON.stringify({ response: { usage: USAGE.responses } })}\n\n`,
  ],
  [
    'an event of Messages',
    'messages',
    (text) => `data: ${JSON.stringify({ type: 'x', text })}\n\ndata: ${JSON.stringify({ type: 'message_delta', usage: USAGE.messages })}\n\n`,
  ],
  [
    'a chunk of Chat Completions',
    'chat',
    (text) => `data: ${JSON.stringify({ choices: [{ delta: { content: text } }], usage: USAGE.chat })}\n\ndata: [DONE]\n\n`,
  ],
  ['a whole answer of Messages', 'messages', (text) => JSON.stringify({ content: [{ type: 'text', text }], usage: USAGE.messages })],
  [
    'a whole answer of Chat Completions, with spaces',
    'chat',
    (text) => JSON.stringify({ choices: [{ message: { content: text } }], usage: USAGE.chat }, null, 2),
  ],
  ['no end of line', 'messages', (text) => `data: ${JSON.stringify({ type: 'message_delta', text, usage: USAGE.messages })}`],
]

describe('the bill', () => {
  test.each(LARGE.flatMap(([name, api, answer]) => [0, 1, 7.9, 20].map((size) => [name, size, api, answer] as const)))(
    'is read from %s of %d MB',
    (_name, size, api, answer) => {
      const bytes = Buffer.from(answer('a "quoted" \\ ü '.repeat((size * MB) / 15)))
      const reader = new AnswerReader(api)
      for (const piece of pieces(bytes, 16_384)) reader.write(piece)
      expect([reader.end().usage, reader.isRead]).toEqual([BILLED, true])
    },
  )

  test.each<[string, (event: object) => string]>([
    ['lines that end with a carriage return', (event) => `event: x\rdata: ${JSON.stringify(event)}\r\r`],
    ['lines that end with both', (event) => `data: ${JSON.stringify(event)}\r\n\r\n`],
    ['an object over several lines of data', (event) => `${JSON.stringify(event, null, 1).replace(/^/gm, 'data: ')}\n\n`],
    ['the same with carriage returns', (event) => `${JSON.stringify(event, null, '\t').replace(/^/gm, 'data:')}\r\n\r\n`.replace(/\r?\n/g, '\r')],
    ['a mark of UTF-8', (event) => `\ufeffdata: ${JSON.stringify(event)}\n\n`],
    ['events without lines between them', (event) => `data: ${JSON.stringify(event)}\ndata: ${JSON.stringify({ type: 'ping' })}\n`],
  ])('is read from %s', (_name, written) => {
    const usage = { input_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 7, output_tokens: 30 }
    const bytes = Buffer.from(
      written({ type: 'message_start', message: { usage } }) + written({ type: 'content_block_delta', delta: { text: 'a {"usage" ü' } }) + 'data: [DONE]\n\n',
    )
    for (const size of [1, 2, 5, 17, bytes.length]) {
      const reader = new AnswerReader('messages')
      for (const piece of pieces(bytes, size)) reader.write(piece)
      expect([size, reader.end().usage]).toEqual([size, { input: 5, cacheRead: 11, cacheWrite: 7, output: 30 }])
    }
  })

  test('a number that no JavaScript number holds does not count', () => {
    const reader = new AnswerReader('messages')
    reader.write(Buffer.from('data: {"usage":{"input_tokens":1e400,"output_tokens":30}}\n\n'))
    expect(reader.end().usage).toEqual({ input: 0, cacheRead: 0, cacheWrite: 0, output: 30 })
  })

  test('figures in a text are no figures', () => {
    const text = `"usage":${JSON.stringify(USAGE.messages)}`.repeat(200_000)
    const reader = new AnswerReader('messages')
    for (const piece of pieces(Buffer.from(`data: ${JSON.stringify({ type: 'x', text })}\n\n`), 16_384)) reader.write(piece)
    expect(reader.end().usage).toBeUndefined()
  })

  test('through the gateway, byte for byte', async () => {
    const answer = LARGE[0]![2]('y'.repeat(12 * MB))
    const { url } = await upstream((_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answer))
    const { gateway } = await gatewayTo(url)
    const loop = new AnthropicLoop(gateway)
    loop.messages.push({ role: 'user', content: 'x' })
    const noted = new Promise((resolve) => gateway.ledger.listen(resolve))
    expect((await loop.send()).text === answer).toBe(true)
    await noted
    expect(gateway.ledger.sessions[0]!.billed.output).toBe(30)
  })
})
