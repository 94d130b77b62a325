/** Traffic through the gateway: bytes, headers, errors, ends. */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer as listenPlainly } from 'node:net'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { proxyFor } from '../../lib/gateway/upstream.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { listening } from '../../rig/listening.ts'
import type { Seen } from './support.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, long, upstream } from './support.ts'

afterEach(cleanUp)

describe('requests', () => {
  test.each([
    ['no JSON', '/v1/messages', 'POST', '{"messages": [', JSON_TYPE],
    ['JSON without messages', '/v1/messages', 'POST', '{"a":1.0}', JSON_TYPE],
    ['messages that are none', '/v1/chat/completions', 'POST', '{"messages":[1]}', JSON_TYPE],
    ['text as input', '/v1/responses', 'POST', '{"input":"hi"}', JSON_TYPE],
    ['a continued response', '/v1/responses', 'POST', '{"previous_response_id":"r","input":[{"role":"user","content":"x"}]}', JSON_TYPE],
    ['a token count', '/v1/messages/count_tokens?beta=true', 'POST', '{"messages":[{"role":"user","content":"x"}]}', JSON_TYPE],
    ['an unknown endpoint', '/v1/files?x=1', 'PUT', 'bytes', {}],
    ['HEAD', '/', 'HEAD', undefined, {}],
    ['DELETE without a body', '/v1/files/1', 'DELETE', undefined, {}],
    ['damaged gzip', '/v1/messages', 'POST', 'no gzip', { ...JSON_TYPE, 'content-encoding': 'gzip' }],
    ['an unknown coding', '/v1/messages', 'POST', 'zzz', { ...JSON_TYPE, 'content-encoding': 'x-new' }],
    ['nothing', '/v1/messages', 'POST', '', JSON_TYPE],
  ])('%s passes as it is', async (_name, path, method, body, headers) => {
    const { url, seen } = await upstream((_, response) => response.writeHead(418, { 'x-kind': 'teapot' }).end('short'))
    const { gateway } = await gatewayTo(url)
    const got = await ask(`${gateway.url}${path}`, {
      method,
      headers: { 'anthropic-version': '1', authorization: 'Bearer t', 'X-Odd-Case': 'Kept', ...headers },
      ...(body === undefined ? {} : { body }),
    })
    expect([got.status, got.headers['x-kind'], got.text]).toEqual([418, 'teapot', method === 'HEAD' ? '' : 'short'])
    const [{ request, body: sent }] = seen as [Seen]
    expect([request.method, request.url, sent.toString()]).toEqual([method, path, body ?? ''])
    expect(request.rawHeaders).toContain('X-Odd-Case')
    expect(request.headers['authorization']).toBe('Bearer t')
    expect(request.headers.host).toBe(url.slice('http://'.length))
  })

  test('a body in gzip is edited, and an unedited one keeps its bytes', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    const body = gzipSync('{ "model": "x",  "messages": [{"role":"user","content":"hello"}], "temperature": 1.0 }')
    await ask(`${gateway.url}/v1/chat/completions`, { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body })
    expect(seen[0]!.body.equals(body)).toBe(true)
    expect(seen[0]!.request.headers['content-encoding']).toBe('gzip')
  })

  test('50 MB pass, and so does a body larger than the gateway reads', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    for (const size of [50 << 20, 65 << 20]) {
      const body = Buffer.from(JSON.stringify({ model: 'x', messages: [{ role: 'user', content: 'y'.repeat(size) }] }))
      expect((await ask(`${gateway.url}/v1/chat/completions`, { headers: JSON_TYPE, body })).status).toBe(200)
      expect(seen.at(-1)!.body.equals(body)).toBe(true)
    }
  })
})

describe('answers', () => {
  test.each([
    [429, { 'retry-after': '7', 'anthropic-ratelimit-requests-remaining': '0' }, '{"type":"error","error":{"type":"rate_limit_error"}}'],
    [500, {}, 'oops'],
    [529, { 'x-should-retry': 'true' }, '{"type":"error"}'],
    [307, { location: 'https://elsewhere.example/v1/messages' }, ''],
  ])('%i is passed on', async (status, headers, text) => {
    const { url } = await upstream((_, response) => response.writeHead(status, headers as Record<string, string>).end(text))
    const { gateway, warnings } = await gatewayTo(url)
    const got = await new AnthropicLoop(gateway).send.call(Object.assign(new AnthropicLoop(gateway), { messages: [{ role: 'user', content: 'x' }] }))
    expect([got.status, got.text]).toEqual([status, text])
    expect(got.headers).toMatchObject(headers)
    expect(warnings).toEqual([])
  })

  test('each piece comes when it is sent, and the end is the end', async () => {
    let send: ServerResponse | undefined
    const { url } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      send = response
    })
    const { gateway } = await gatewayTo(url)
    const { port, pathname } = new URL(`${gateway.url}/v1/messages`)
    const socket = connect(Number(port), '127.0.0.1')
    onCleanUp(() => void socket.destroy())
    const body = '{"messages":[{"role":"user","content":"x"}]}'
    socket.write(`POST ${pathname} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    const read = async (): Promise<string> => String((await once(socket, 'data'))[0])
    expect(await read()).toContain('200 OK')
    for (const piece of ['data: 1\n\n', 'da', 'ta: 2\n\n']) {
      send!.write(piece)
      expect(await read()).toContain(piece)
    }
    send!.end()
    expect(await read()).toContain('0\r\n\r\n')
  })

  test('a stream that breaks off breaks off', async () => {
    const { url } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"type":"message_start"}\n\n', () => response.destroy())
    })
    const { gateway } = await gatewayTo(url)
    const got = await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{"messages":[{"role":"user","content":"x"}]}' })
    expect([got.status, got.isBroken, got.text]).toEqual([200, true, 'data: {"type":"message_start"}\n\n'])
  })

  test('a client that leaves ends the request upstream', async () => {
    let left: Promise<unknown> | undefined
    const { url, seen } = await upstream((one, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      left = once(one.request.socket, 'close')
    })
    const { gateway } = await gatewayTo(url)
    const { port } = new URL(gateway.url)
    const body = '{"messages":[{"role":"user","content":"x"}]}'
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await once(socket, 'data')
    socket.destroy()
    await left
    expect(seen.length).toBe(1)
  })

  test('a client that leaves in the middle of its body sends nothing upstream', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    const { port } = new URL(gateway.url)
    const head = 'POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 44\r\n\r\n'
    const whole = `${head}{"messages":[{"role":"user","content":"x"}]}`
    for (let at = 1; at < whole.length; at += 7) {
      const socket = connect(Number(port), '127.0.0.1')
      await once(socket, 'connect')
      socket.write(whole.slice(0, at))
      socket.end()
      socket.resume()
      await once(socket, 'close')
    }
    expect(seen).toEqual([])
    expect((await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{"messages":[{"role":"user","content":"x"}]}' })).status).toBe(200)
  })

  test.each<[what: string, answer: string, sentence: RegExp]>([
    ['nothing', '', /127\.0\.0\.1:\d+ has closed the connection before it answered \(ECONNRESET\)/],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', /127\.0\.0\.1:\d+ has answered with something other than HTTP \(HPE_\w+\)/],
  ])('an upstream that answers %s is told in words', async (_, answer, sentence) => {
    const server = listenPlainly((socket) => void socket.once('data', () => socket.end(answer)))
    const { gateway } = await gatewayTo(await listening(server))
    const got = await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{}' })
    expect([got.status, got.text]).toEqual([502, expect.stringMatching(sentence)])
  })

  test('an upstream that is not there is named', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const got = await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{}' })
    expect(got.status).toBe(502)
    expect(got.text).toContain('no server answers at 127.0.0.1:1 (ECONNREFUSED)')
  })
})

describe('proxies', () => {
  test('request goes through the proxy of the environment, which sees only the name', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const asked: string[] = []
    const proxy = createServer().on('connect', (request: IncomingMessage, socket: Socket) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization']} ${request.headers.authorization}`)
      const on = connect(Number(new URL(url).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        on.pipe(socket).pipe(on)
      })
    })
    const http_proxy = (await listening(proxy)).replace('//', '//me:p%40ss@')
    const { gateway } = await gatewayTo('http://provider.example', { env: { http_proxy } })
    const got = await ask(`${gateway.url}/v1/messages`, { headers: { ...JSON_TYPE, authorization: 'Bearer t' }, body: '{}' })
    expect(got.status).toBe(200)
    expect(asked).toEqual([`provider.example:80 Basic ${Buffer.from('me:p@ss').toString('base64')} undefined`])
    expect(seen[0]!.request.headers).toMatchObject({ host: 'provider.example', authorization: 'Bearer t' })
  })

  test.each([
    ['https://api.anthropic.com', { HTTPS_PROXY: 'http://p:1' }, 'http://p:1'],
    ['https://api.anthropic.com', { https_proxy: 'p:1' }, 'http://p:1'],
    ['https://api.anthropic.com', { http_proxy: 'http://p:1' }, undefined],
    ['https://api.anthropic.com', { all_proxy: 'http://p:1', no_proxy: 'x, .anthropic.com' }, undefined],
    ['https://api.anthropic.com', { all_proxy: 'http://p:1', NO_PROXY: 'anthropic.com:8443' }, 'http://p:1'],
    ['https://api.anthropic.com', { all_proxy: 'http://p:1', NO_PROXY: 'thropic.com' }, 'http://p:1'],
    ['https://api.anthropic.com', { all_proxy: 'http://p:1', no_proxy: '*' }, undefined],
    ['http://127.0.0.1:3000', { all_proxy: 'http://p:1' }, undefined],
    ['http://[::1]:3000', { all_proxy: 'http://p:1' }, undefined],
  ])('%s with %j', (target, env, wanted) => {
    expect(proxyFor(new URL(target), env)).toBe(wanted)
  })
})

describe('the gateway itself', () => {
  test('needs its own name, its token, and its secret', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url, { token: 'tok' })
    const { origin } = new URL(gateway.url)
    const status = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
      (await ask(`${origin}${path}`, { headers, body: '{}' })).status
    expect(await status('/v1/messages')).toBe(403)
    expect(await status('/tok/v1/messages')).toBe(200)
    expect(await status('/tok/v1/messages', { host: 'evil.example' })).toBe(421)
    expect(await status('/tok/_context/mcp')).toBe(401)
    expect(await status('/tok/_context/mcp', { authorization: 'Bearer tok' })).toBe(401)
    expect(await status('/_context/mcp', { authorization: `Bearer ${gateway.secret}` })).toBe(200)
    expect(await status('/_context/mcp', { authorization: `Bearer ${gateway.secret}`, origin: 'https://evil.example' })).toBe(403)
    expect(seen.map(({ request }) => request.url)).toEqual(['/v1/messages'])
  })

  test('a second one on the same port says that it is taken', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    await expect(gatewayTo('http://127.0.0.1:1', { port: Number(new URL(gateway.url).port) })).rejects.toThrow('EADDRINUSE')
  })

  test('if the projection is too slow, the last form is sent with the new messages, and the user hears of it once', async () => {
    const { url, seen } = await upstream((_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {}\n\n'))
    const { gateway, warnings } = await gatewayTo(url, { limitMs: 10_000 })
    const loop = new AnthropicLoop(gateway)
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const before = JSON.parse(seen.at(-1)!.body.toString()).messages as object[]
    expect(JSON.stringify(before)).toContain('toolcall_ref id=')
    const { projection } = await gateway.conversations.all[0]!.session()
    projection.transform = () => Promise.reject(new Error('no disk'))
    for (const name of ['x', 'y']) await loop.call('Bash', { command: name }, long(name))
    const now = JSON.parse(seen.at(-1)!.body.toString()).messages as object[]
    const plain = (list: object[]): string[] => list.map((one) => JSON.stringify(one, (key, value: unknown) => (key === 'cache_control' ? undefined : value)))
    expect(plain(now).slice(0, before.length)).toEqual(plain(before))
    expect(JSON.stringify(now.at(-1))).toContain('y line 119')
    expect(warnings).toEqual([expect.stringContaining('no disk')])
  })
})
