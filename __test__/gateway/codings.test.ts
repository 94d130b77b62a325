/** Answers in every content coding: the bill is read, a refusal is heard, and unreadable answers are reported and counted. */
import { createServer, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { billsFile } from '../../lib/gateway/bills.ts'
import { canDecode, codingsOf, decoded } from '../../lib/gateway/coding.ts'
import { folder } from '../core/setup.ts'
import { cli } from '../replay/support.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { listening } from '../../rig/listening.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, ask, billedIn, gatewayTo, JSON_TYPE, long, upstream } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

type Encode = (bytes: Buffer) => Buffer

const gzip: Encode = (bytes) => zlib.gzipSync(bytes)
const br: Encode = (bytes) => zlib.brotliCompressSync(bytes)
const zstd = (zlib as { zstdCompressSync?: Encode }).zstdCompressSync

/** Headers, and how the bytes were made: codings are applied from the first to the last. */
const CODINGS: [name: string, header: string | string[] | undefined, encode: Encode][] = [
  ['plain', undefined, (bytes) => bytes],
  ['identity', 'identity', (bytes) => bytes],
  ['gzip', 'gzip', gzip],
  ['x-gzip', 'x-gzip', gzip],
  ['gzip in capital letters', 'GZip', gzip],
  ['gzip in two members', 'gzip', (bytes) => Buffer.concat([gzip(bytes.subarray(0, 40)), gzip(bytes.subarray(40))])],
  ['deflate', 'deflate', (bytes) => zlib.deflateSync(bytes)],
  ['deflate without its header', 'deflate', (bytes) => zlib.deflateRawSync(bytes)],
  ['deflate without its header, stored', 'deflate', (bytes) => zlib.deflateRawSync(bytes, { level: 0 })],
  ...[0, 1, 9].map((level): [string, string, Encode] => [
    `deflate at level ${level}`,
    'deflate',
    (bytes) => zlib.deflateSync(bytes, { level, windowBits: 9 + level / 3 }),
  ]),
  ['br', 'br', br],
  ...(zstd === undefined ? [] : ([['zstd', 'zstd', zstd]] as [string, string, Encode][])),
  ['gzip, br', 'gzip, br', (bytes) => br(gzip(bytes))],
  ['gzip, gzip', 'gzip, gzip', (bytes) => gzip(gzip(bytes))],
  ['identity, gzip', 'identity, gzip', gzip],
  ['gzip, identity', 'gzip,identity,', gzip],
  ['two headers', ['gzip', 'br'], (bytes) => br(gzip(bytes))],
  ['two headers, one with two', ['deflate', 'identity, gzip'], (bytes) => gzip(zlib.deflateRawSync(bytes))],
]

const STREAM = Buffer.from(
  [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 7, output_tokens: 1 } } },
    { type: 'content_block_delta', delta: { type: 'text_delta', text: 'words ü '.repeat(200) } },
    { type: 'message_delta', usage: { output_tokens: 30 } },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
)
const WHOLE = Buffer.from(
  JSON.stringify(
    {
      type: 'message',
      content: [{ type: 'text', text: 'words '.repeat(100) }],
      usage: { input_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 7, output_tokens: 30 },
    },
    null,
    2,
  ),
)
const BILLED = { input: 5, cacheRead: 11, cacheWrite: 7, output: 30 }

const BODY = JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], tools: [{ name: 'Bash' }] })

/** An answer: its bytes as coded, its type, and the size of the pieces that it comes in. */
interface Coded {
  bytes: Buffer
  type: string
  size?: number
}

/** A gateway before a server that gives these answers in a coding, one after the other and the last one again. */
async function answering(header: string | string[] | undefined, ...answers: Coded[]) {
  const left = [...answers]
  const { url } = await upstream((_, response) => {
    const { bytes, type, size = bytes.length } = (left.length > 1 ? left.shift() : left[0]) as Coded
    if (type !== '') response.setHeader('content-type', type)
    if (header !== undefined) response.setHeader('content-encoding', header)
    for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size))
    response.end()
  })
  const store = join(folder(), 'context.db')
  const billsPath = billsFile({ kind: 'sqlite', path: store })
  const { gateway, warnings } = await gatewayTo(url, { store: { kind: 'sqlite', path: store }, billsPath })
  const send = () => ask(`${gateway.url}/v1/messages`, { headers: { ...JSON_TYPE, 'x-claude-code-session-id': 's' }, body: BODY })
  const bills = async (): Promise<any[]> => {
    await gateway.close()
    return billedIn(billsPath)
  }
  return { send, bills, warnings, store }
}

describe('the bill', () => {
  test.each(some(CODINGS, 6))('%s', async (_name, header, encode) => {
    const kinds = [
      [STREAM, 'text/event-stream'],
      [STREAM, ''],
      [WHOLE, 'application/json'],
      [WHOLE, 'text/event-stream'],
    ] as const
    const answers = kinds.flatMap(([plain, type]) => [1, 1000].map((size) => ({ bytes: encode(plain), type, size })))
    const { send, bills, warnings } = await answering(header, ...answers)
    for (const _ of answers) await send()
    expect((await bills()).map(({ billed }) => billed)).toEqual(answers.map(() => BILLED))
    expect(warnings).toEqual([])
  })

  test('an answer that is cut in the middle counts its first part', async () => {
    const coded = gzip(Buffer.concat([STREAM, Buffer.from(Array.from({ length: 30_000 }, (_, n) => `: ${n * 7919}\n`).join(''))]))
    const { url } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      response.write(coded.subarray(0, coded.length >> 1), () => response.destroy())
    })
    const { gateway, warnings } = await gatewayTo(url)
    const noted = new Promise((resolve) => gateway.ledger.listen(resolve))
    await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: BODY })
    await noted
    expect(gateway.ledger.sessions[0]!.billed).toEqual(BILLED)
    expect(warnings).toEqual([])
  })
})

describe('an unreadable answer', () => {
  test.each<[string, string | undefined, Buffer, RegExp]>([
    ['a coding that is not known', 'x-new', STREAM, /coding "x-new"/],
    ['one of two that is not known', 'gzip, x-new', gzip(STREAM), /coding "gzip, x-new"/],
    ['gzip without the header', undefined, gzip(STREAM), /neither a stream of events/],
    ['plain text with the header gzip', 'gzip', STREAM, /not in the coding "gzip"/],
    ['more codings than anybody nests', 'gzip, gzip, gzip, gzip, gzip', STREAM, /coding "gzip, gzip/],
  ])('%s is told once, and counted as a call without a bill', async (_name, header, bytes, sentence) => {
    const { send, bills, warnings, store } = await answering(header, { bytes, type: 'text/event-stream' })
    for (const _ of [1, 2]) expect((await send()).status).toBe(200)
    expect(await bills()).toEqual([1, 2].map(() => expect.not.objectContaining({ billed: expect.anything() })))
    expect(warnings).toEqual([expect.stringMatching(sentence)])
    const env = { PI_CODING_AGENT_DIR: join(store, '..', 'no-pi'), XDG_DATA_HOME: join(store, '..') }
    const { total } = JSON.parse((await cli(['usage', '--store', store, '--json'], env)).stdout)
    expect(total).toMatchObject({ calls: 2, unbilledCalls: 2, unpricedCalls: 0, cost: 0 })
    expect((await cli(['usage', '--store', store], env)).stderr).toContain('2 of 2 calls have no bill')
  })

  test('an answer without figures is counted, and nothing is wrong with it', async () => {
    const { send, bills, warnings } = await answering(undefined, { bytes: Buffer.from('{"type":"message"}'), type: 'application/json' })
    await send()
    expect(await bills()).toEqual([expect.not.objectContaining({ billed: expect.anything() })])
    expect(warnings).toEqual([])
  })
})

describe('a refusal', () => {
  /** A proxy that maps the name of a model to one that binds its reasoning, and compresses what goes wrong. */
  async function strict(header: string | string[] | undefined, encode: Encode) {
    const server = await startModelServer(() => 'ok', { account: 'new' })
    const proxy = createServer((request, response) => {
      const on = httpRequest(`${server.url}${request.url}`, { method: request.method, headers: request.headers }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const isRefused = answer.statusCode === 400
          const bytes = Buffer.concat(chunks)
          response.statusCode = answer.statusCode ?? 500
          response.setHeader('content-type', answer.headers['content-type'] ?? '')
          if (isRefused && header !== undefined) response.setHeader('content-encoding', header)
          response.end(isRefused ? encode(bytes) : bytes)
        })
      })
      request.pipe(on)
    })
    return { server, url: await listening(proxy) }
  }

  // Each decoder, and both ways to nest them; the other rows of the table differ in what the bill has tried.
  const decoders = CODINGS.filter(([name]) => ['plain', 'gzip', 'deflate without its header', 'br', 'zstd', 'gzip, br', 'two headers'].includes(name))

  test.each(some(decoders, 2))('%s is heard once', async (_name, header, encode) => {
    const { server, url } = await strict(header, encode)
    const { gateway, warnings } = await gatewayTo(url)
    const loop = new BoundLoop(gateway)
    const refused = await loop.until(server, 60)
    expect(refused.length).toBe(1)
    expect(warnings).toEqual([expect.stringContaining('has refused reasoning of claude-sonnet-4-5')])
  })

  // A proxy may unpack a body and leave its header, or the other way round.
  const wrong: typeof CODINGS = [
    ['plain text that is called gzip', 'gzip', (bytes) => bytes],
    ['plain text that is called br', 'br', (bytes) => bytes],
    ['plain text in a coding that is not known', 'x-new', (bytes) => bytes],
    ['gzip without its header', undefined, gzip],
    ['gzip that is called deflate', 'deflate', gzip],
    ['gzip that is called br', 'br', gzip],
    ['gzip that has lost one of two names', 'gzip', (bytes) => gzip(gzip(bytes))],
  ]
  test.each(some(wrong, 2))('%s is heard once', async (_name, header, encode) => {
    const { server, url } = await strict(header, encode)
    const { gateway, warnings } = await gatewayTo(url)
    const refused = await new BoundLoop(gateway).until(server, 60)
    expect([refused.length, warnings]).toEqual([1, [expect.stringContaining('has refused reasoning of claude-sonnet-4-5')]])
  })

  test.each([undefined, 'gzip'])('in %s says more than the user has set', async (header) => {
    const { server, url } = await strict(header, header === undefined ? (bytes) => bytes : gzip)
    const models = { 'claude-opus-5-5': { binding: 'none' as const }, 'claude-sonnet-4-5': { binding: 'none' as const } }
    for (const model of Object.keys(models)) {
      const { gateway, warnings } = await gatewayTo(url, { models })
      const loop = new BoundLoop(gateway, `session-${model}`)
      loop.model = model
      expect((await loop.until(server, 60)).length).toBe(1)
      expect(warnings).toEqual([expect.stringContaining(`has refused reasoning of ${model}`)])
    }
  })
})

/** A loop whose model thinks: its signatures are the provider's own. */
class BoundLoop extends AnthropicLoop {
  /** Sends this many calls; after each refusal the user says a word, at most 8 times. Returns the refusals. */
  async until(server: Awaited<ReturnType<typeof startModelServer>>, calls: number): Promise<string[]> {
    const refused: string[] = []
    this.messages.push({ role: 'user', content: [{ type: 'text', text: 'go' }] })
    for (let n = 0; n < calls; n += 1) {
      const id = `toolu_${this.session}_${n}`
      server.script(() => ({ thinking: `about ${id}`, calls: [{ id, name: 'Bash', args: { command: `cat n${n}` } }] }))
      let got = await this.send()
      for (; got.status === 400 && refused.length < 8; got = await this.send()) {
        refused.push(got.text)
        this.messages.push({ role: 'user', content: [{ type: 'text', text: `try again ${n}` }] })
      }
      if (got.status !== 200) break
      this.messages.push({ role: 'assistant', content: blocksIn(got.text) })
      this.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: long(`n${n}`) }] })
      if (n % 4 === 3)
        this.messages.push(
          { role: 'assistant', content: [{ type: 'text', text: `done ${n}` }] },
          { role: 'user', content: [{ type: 'text', text: `continue ${n}` }] },
        )
    }
    return refused
  }
}

/** The blocks of an answer in a stream. */
function blocksIn(text: string): any[] {
  const blocks: any[] = []
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: ')) continue
    const { type, index, content_block: block, delta } = JSON.parse(line.slice(6))
    if (type === 'content_block_start') blocks[index] = { ...block, json: '' }
    if (type !== 'content_block_delta') continue
    if (delta.type === 'thinking_delta') blocks[index].thinking += delta.thinking
    if (delta.type === 'signature_delta') blocks[index].signature = delta.signature
    if (delta.type === 'text_delta') blocks[index].text += delta.text
    if (delta.type === 'input_json_delta') blocks[index].json += delta.partial_json
  }
  return blocks.map(({ json, ...block }) => (block.type === 'tool_use' ? { ...block, input: JSON.parse(json || '{}') } : block))
}

describe('bodies of requests', () => {
  test.each(some(CODINGS, 6, 1))('%s', async (_name, header, encode) => {
    const codings = codingsOf(header)
    expect(canDecode(codings)).toBe(true)
    expect((await decoded(encode(STREAM), codings)).equals(STREAM)).toBe(true)
  })
})
