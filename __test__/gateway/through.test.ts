/** The gateway as a process, beside the same client without it: whatever is asked, the answer and what the provider sees are the same. */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as zlib from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { answerTo, listening } from '../../rig/listening.ts'
import { startProcess } from './support.ts'

/** Headers that belong to one connection, and to the transfer of a body on it. */
const OF_CONNECTION = ['connection', 'content-length', 'transfer-encoding', 'expect']

/** Answers with all that it was asked. */
async function echo(host = '127.0.0.1'): Promise<string> {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const headers = request.rawHeaders.flatMap((name, at) =>
        at % 2 === 0 && !OF_CONNECTION.includes(name.toLowerCase()) ? [`${name}: ${request.rawHeaders[at + 1]}`] : [],
      )
      const { method = '', url = '' } = request
      response.writeHead(299, 'Echoed', { 'x-method': method, 'content-type': 'application/json', 'x-twice': ['a=1', 'b=2'] })
      response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString('base64') }))
    })
  }
  return listening(createServer({ maxHeaderSize: 256 * 1024 }, answer), host)
}

/** The whole answer to these bytes until the other side closes, without dates. */
async function raw(url: string, bytes: readonly (string | Buffer)[]): Promise<string> {
  const text = await answerTo(url, ...bytes)
  return text.replace(/^(?:Date|Connection|Keep-Alive): .*\r\n/gim, '').replaceAll(/^Transfer-Encoding: chunked\r\n/gim, '')
}

const MESSAGES = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello ü' }], temperature: 1.0 })
const head = (line: string, headers: Record<string, string | number> = {}): string =>
  `${line}\r\nHost: HOST\r\n${Object.entries({ 'X-Odd-Case': 'Kept', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}Connection: close\r\n\r\n`
const chunked = (text: string): string =>
  `${[...text.match(/[^]{1,7}/g)!].map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
const posted = (path: string, body: string | Buffer, headers: Record<string, string | number> = {}): (string | Buffer)[] => [
  head(`POST ${path} HTTP/1.1`, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers }),
  body,
]

describe('through a gateway', () => {
  let plain = ''
  let through = ''
  beforeAll(async () => {
    plain = await echo()
    through = (await startProcess(folder(), plain, { HTTPS_PROXY: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' })).url.replace('/anthropic', '')
  })
  afterAll(cleanUp)

  test.each<[string, (string | Buffer)[]]>([
    ['a conversation', posted('/v1/messages?beta=true', MESSAGES)],
    ['a conversation in chunks', [head('POST /v1/messages HTTP/1.1', { 'Transfer-Encoding': 'chunked' }), chunked(MESSAGES)]],
    ['a conversation for which the client waits to be asked', posted('/v1/chat/completions', MESSAGES, { Expect: '100-continue' })],
    ['chunks for another endpoint', [head('PUT /v1/files/x HTTP/1.1', { 'Transfer-Encoding': 'chunked' }), chunked('some bytes, no JSON')]],
    ['brotli', posted('/v1/messages', zlib.brotliCompressSync(MESSAGES), { 'Content-Encoding': 'br' })],
    ['gzip', posted('/v1/responses', zlib.gzipSync(MESSAGES.replace('messages', 'input')), { 'Content-Encoding': 'gzip' })],
    ['a body that is not gzip', posted('/v1/messages', 'no gzip', { 'Content-Encoding': 'gzip' })],
    ['no JSON', posted('/v1/messages', '{"messages": [')],
    ['no body', posted('/v1/messages', '')],
    ['a token count', posted('/v1/messages/count_tokens?beta=true', MESSAGES)],
    ['the models', [head('GET /v1/models?limit=1000 HTTP/1.1', { 'x-api-key': 'k' })]],
    ['the models of the other provider', [head('GET /v1/models HTTP/1.1', { Authorization: 'Bearer t' })]],
    ['HEAD', [head('HEAD / HTTP/1.1', { 'x-api-key': 'k' })]],
    ['OPTIONS', [head('OPTIONS /v1/messages HTTP/1.1', { 'Access-Control-Request-Method': 'POST' })]],
    ['a long address', [head(`GET /v1/files?after=${'a'.repeat(30_000)} HTTP/1.1`, { 'x-api-key': 'k' })]],
    ['long headers', posted('/v1/messages', MESSAGES, { 'X-Long': 'a'.repeat(60_000) })],
    ['a header twice', [`GET /v1/models HTTP/1.1\r\nHost: HOST\r\nx-api-key: k\r\nX-A: 1\r\nx-a: 2\r\nConnection: close\r\n\r\n`]],
    ['HTTP/1.0', [head('GET /v1/models HTTP/1.0', { 'x-api-key': 'k' })]],
    [
      'three requests at once',
      [
        head('GET /v1/models HTTP/1.1').replace('Connection: close\r\n', ''),
        ...posted('/v1/messages', MESSAGES).map((part) => String(part).replace('Connection: close\r\n', '')),
        head('GET /v1/models?3 HTTP/1.1'),
      ],
    ],
    ['a length that is none', [head('POST /v1/messages HTTP/1.1', { 'Content-Length': 'x' }), MESSAGES]],
    ['bytes that are not HTTP', ['hello\r\n\r\n']],
  ])('%s is the same', async (_, bytes) => {
    const of = (url: string): Promise<string> =>
      raw(
        url,
        bytes.map((part) => (typeof part === 'string' ? part.replaceAll('HOST', new URL(url).host) : part)),
      )
    const [direct, led] = [await of(plain), await of(through)]
    expect(led).toBe(direct)
    expect(led).toMatch(/^HTTP\/1\.1 (?:299 Echoed|100 Continue|400 )/)
  })

  test('an address with a path before it, and one by number', async () => {
    const paths = await fetch(`${through}/${plain}/corp/llm/v1/messages`, { method: 'POST', body: MESSAGES })
    expect(await paths.json()).toMatchObject({ url: '/corp/llm/v1/messages' })
    const six = await echo('::1').catch(() => undefined)
    if (six === undefined) return void process.stderr.write('skipped: an IPv6 address (there is none here)\n')
    const led = await fetch(`${through}/${six}/v1/messages`, { method: 'POST', body: MESSAGES })
    expect(await led.json()).toMatchObject({ url: '/v1/messages', headers: expect.arrayContaining([`Host: ${new URL(six).host}`]) })
  })

  test('a web socket is declined, as Codex takes it', async () => {
    const answer = await raw(through, [
      `GET /openai/responses HTTP/1.1\r\nHost: ${new URL(through).host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    ])
    expect(answer).toMatch(/^HTTP\/1\.1 426 /)
  })
})
