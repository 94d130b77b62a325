/** One request of a client is one request upstream, and none is sent twice that the upstream may have seen. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTcp } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { exchange } from '../../lib/gateway/exchange.ts'
import { framingOf } from '../../lib/gateway/headers.ts'
import { Upstream } from '../../lib/gateway/upstream.ts'
import { folder } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { answerTo, listening } from '../../rig/listening.ts'
import { ask, billedIn, gatewayTo, JSON_TYPE, upstream } from './support.ts'
import type { Got } from './support.ts'

afterEach(cleanUp)

/** A body that is a request, if its frame is lost. */
const SMUGGLED = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'

const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'PROPFIND', 'LINK']

/** Headers of a body, and its bytes on the wire. */
const FRAMES: [name: string, headers: string[], wire: (body: string) => string][] = [
  ['a length', ['Content-Length: LENGTH'], (body) => body],
  ['chunks', ['Transfer-Encoding: chunked'], chunked],
  ['chunks, in capital letters', ['transfer-encoding: CHUNKED'], chunked],
  ['a length that Connection names', ['Content-Length: LENGTH', 'Connection: content-length, x-other'], (body) => body],
  ['a length that Connection names twice', ['Connection: Content-Length', 'Content-Length: LENGTH', 'Connection: keep-alive , CONTENT-LENGTH'], (body) => body],
  ['chunks that Connection names', ['Transfer-Encoding: chunked', 'Connection: transfer-encoding'], chunked],
]

function chunked(text: string): string {
  return `${(text.match(/[^]{1,17}/g) ?? []).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
}

/** Sends bytes, and waits until the other side has answered and closes, or answers a second request. */
function raw(gateway: Gateway, text: string): Promise<string> {
  // The second request is served after the first one, and closes.
  return answerTo(gateway.url, `${text}GET /v1/end HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nConnection: close\r\n\r\n`)
}

describe('one request is one request', () => {
  test.each(METHODS.flatMap((method) => FRAMES.map(([name, headers, wire]) => [method, name, headers, wire] as const)))(
    '%s with %s',
    async (method, _name, headers, wire) => {
      const { url, seen } = await upstream((_, response) => response.end('{}'))
      const { gateway } = await gatewayTo(url)
      for (const path of ['/v1/messages', '/v1/files', '/openai/responses/r']) {
        for (const body of [SMUGGLED, '']) {
          seen.length = 0
          const head = headers.map((header) => `${header.replace('LENGTH', String(body.length))}\r\n`).join('')
          await raw(gateway, `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\n${head}\r\n${wire(body)}`)
          // Those on one connection are on their way at the same time.
          const arrived = seen.map(({ request, body: bytes }) => [request.url!.endsWith('/end'), request.method, bytes.toString()]).toSorted()
          expect([path, arrived]).toEqual([
            path,
            [
              [false, method, body],
              [true, 'GET', ''],
            ],
          ])
        }
      }
    },
  )

  test.each(['host', 'authorization', 'x-api-key', 'cookie', 'content-type', 'content-encoding', 'anthropic-version', 'anthropic-beta', 'chatgpt-account-id'])(
    '%s passes, though Connection names it',
    async (name) => {
      const { url, seen } = await upstream((_, response) => response.end('{}'))
      const { gateway } = await gatewayTo(url)
      const value = name === 'content-encoding' ? 'identity' : 'v'
      const header = name === 'host' ? '' : `${name}: ${value}\r\n`
      await raw(gateway, `POST /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n${header}Connection: ${name}\r\nContent-Length: 2\r\n\r\n{}`)
      expect(seen.find(({ request }) => request.method === 'POST')!.request.headers[name]).toBe(name === 'host' ? new URL(url).host : value)
    },
  )

  test('headers of one connection stay on it', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    await raw(
      gateway,
      'POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nHop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nConnection: Hop, keep-alive\r\nContent-Length: 2\r\n\r\n{}',
    )
    expect(
      Object.keys(seen.find(({ request }) => request.method === 'POST')!.request.headers).filter((name) => ['hop', 'keep-alive', 'te'].includes(name)),
    ).toEqual([])
  })

  test.each<[string, string, (body: string) => string]>([
    ['HTTP/2', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: LENGTH', (body) => body],
    ['TLS', 'Connection: upgrade\r\nUpgrade: TLS/1.3, HTTP/1.1\r\nTransfer-Encoding: chunked', chunked],
  ])('an offer of %s is left out, and its request is answered', async (_name, head, wire) => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    for (const [method, path] of METHODS.flatMap(
      (one) =>
        [
          [one, '/v1/messages'],
          [one, '/v1/files'],
        ] as const,
    )) {
      seen.length = 0
      // Node loses bytes that it has read behind an offer: the connection ends, so that the client sends them again.
      const got = await raw(
        gateway,
        `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\n${head.replace('LENGTH', String(SMUGGLED.length))}\r\n\r\n${wire(SMUGGLED)}`,
      )
      expect([method, path, got]).toEqual([method, path, expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n/)])
      expect(seen.map(({ request, body }) => [request.method, request.headers.upgrade, request.headers['http2-settings'], body.toString()])).toEqual([
        [method, undefined, undefined, SMUGGLED],
      ])
    }
  })

  // Node 22 refuses most of these; Node 20 takes an empty coding for none, and goes by the length.
  test.each<[string, string | undefined, string | undefined, string[]]>([
    ['an empty coding and a length', '', '46', ['Content-Length', '46']],
    ['commas and a length', ' , ', '46', ['Content-Length', '46']],
    ['an empty coding before chunks', ', ,chunked', undefined, ['Transfer-Encoding', 'chunked']],
    ['a coding before chunks', 'gzip ,, chunked', undefined, ['Transfer-Encoding', 'gzip, chunked']],
  ])('%s upstream', (_name, transfer, length, framed) => {
    const headers = { ...(transfer !== undefined && { 'transfer-encoding': transfer }), ...(length !== undefined && { 'content-length': length }) }
    for (const method of METHODS) {
      expect(framingOf({ method, headers }, undefined, {})).toEqual(framed)
      const whole = transfer?.includes('gzip') === true ? framed : ['Content-Length', '2']
      expect(framingOf({ method, headers }, Buffer.from('{}'), undefined)).toEqual(whole)
    }
  })

  test('a thousand and more headers pass, in both directions', async () => {
    const many = Array.from({ length: 1_500 }, (_, n) => `X-${n}: ${n}\r\n`).join('')
    let sent = ''
    const server = createTcp((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        sent += data.toString()
        if (sent.endsWith('{}')) socket.end(`HTTP/1.1 200 OK\r\n${many}Content-Length: 2\r\nConnection: close\r\n\r\n{}`)
      })
    })
    const { gateway } = await gatewayTo(await listening(server))
    const got = await answerTo(gateway.url, `POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n${many}Content-Length: 2\r\nConnection: close\r\n\r\n{}`)
    expect(sent).toContain(many)
    expect(sent).toMatch(/Content-Length: 2\r\n[^]*\r\n\r\n\{\}$/)
    expect(got).toContain(many)
  })

  test("bytes above ASCII in an answer's head stay as they are", async () => {
    const server = createTcp((socket) => {
      socket.on('error', () => {})
      socket.once('data', () =>
        socket.end(Buffer.from('HTTP/1.1 200 Pr\xeat\r\nX-Name: caf\xe9 \xc3\xa9\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}', 'latin1')),
      )
    })
    const { gateway } = await gatewayTo(await listening(server))
    for (const request of ['GET /v1/models', 'HEAD /v1/models', 'POST /v1/messages']) {
      const got = await raw(
        gateway,
        `${request} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\n${request.startsWith('POST') ? 'Content-Length: 0\r\n' : ''}\r\n`,
      )
      expect([request, got]).toEqual([request, expect.stringContaining('HTTP/1.1 200 Pr\xeat\r\nX-Name: caf\xe9 \xc3\xa9\r\n')])
    }
  })

  test('an answer whose Connection names its length or its coding keeps both', async () => {
    const server = createTcp((socket) => {
      socket.on('error', () => {})
      socket.once('data', () =>
        socket.end(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: identity\r\nContent-Length: 2\r\nConnection: content-length, content-encoding, content-type, close\r\n\r\n{}',
        ),
      )
    })
    const { gateway } = await gatewayTo(await listening(server))
    const got = await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{}' })
    expect([got.text, got.headers['content-length'], got.headers['content-encoding'], got.headers['content-type']]).toEqual([
      '{}',
      '2',
      'identity',
      'application/json',
    ])
  })
})

/** The ways for an upstream to end a connection. */
const ENDS: [name: string, end: (socket: Socket) => void][] = [
  ['a reset', (socket) => void socket.resetAndDestroy()],
  ['an end', (socket) => void socket.end()],
  ['an end after half a head', (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Ty')],
  ['an end after a sign of life', (socket) => void socket.end('HTTP/1.1 102 Processing\r\n\r\n')],
]

describe('a connection that is kept', () => {
  /** A server that answers the first request of a connection; at the second one it calls `end`. */
  async function closing(end: (socket: Socket) => void, afterMs: number) {
    const requests: string[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text))
      request.on('end', () => {
        requests.push(body)
        if (requests.length === 1) return void response.end('{}')
        const { socket } = request
        setTimeout(() => end(socket), afterMs)
      })
    })
    const billsPath = join(folder(), 'bills.jsonl')
    const { gateway } = await gatewayTo(await listening(server), { billsPath })
    const send = (n: number): Promise<Got | 'broken'> =>
      ask(`${gateway.url}/v1/messages`, {
        headers: { ...JSON_TYPE, 'x-claude-code-session-id': 's' },
        body: JSON.stringify({ model: 'm', n, messages: [{ role: 'user', content: 'x' }], tools: [{ name: 'Bash' }] }),
      }).catch(() => 'broken' as const)
    const bills = async (): Promise<any[]> => {
      await gateway.close()
      return billedIn(billsPath)
    }
    return { gateway, requests, send, bills }
  }

  test.each(ENDS.flatMap(([name, end]) => [0, 20, 300].map((ms) => [name, ms, end] as const)))(
    '%s after %i ms of work: nothing is sent again, the client sees it, and it is counted',
    async (_name, ms, end) => {
      const { gateway, requests, send, bills } = await closing(end, ms)
      expect(await send(1)).toMatchObject({ status: 200 })
      expect(await send(2)).toBe('broken')
      expect(requests.map((body) => JSON.parse(body).n)).toEqual([1, 2])
      const [session] = gateway.ledger.sessions
      expect(session).toMatchObject({ requests: 2, failures: 1 })
      expect(session!.calls.map(({ status }) => status)).toEqual([200, 0])
      expect((await bills()).length).toBe(2)
    },
  )

  /** A server that keeps what it gets, and its newest connection. */
  async function keeping() {
    const bodies: string[] = []
    let newest: Socket | undefined
    const server = createServer((request, response) => {
      newest = request.socket
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text))
      request.on('end', () => {
        bodies.push(`${request.method} ${body}`)
        response.end('{}')
      })
    })
    return { url: await listening(server), bodies, newest: () => newest as Socket }
  }

  test.each([
    ['an end', (socket: Socket) => void socket.destroy()],
    ['a reset', (socket: Socket) => void socket.resetAndDestroy()],
  ])('one that the upstream closes with %s just before its next use is not used', async (_name, end) => {
    const { url, bodies, newest } = await keeping()
    const connections = new Upstream({})
    onCleanUp(() => connections.close())
    const front = createServer((client, response) => {
      if (bodies.length > 0) end(newest())
      void exchange(connections, client, response, { target: new URL(url), path: '/', body: Buffer.from('{}'), rest: undefined })
    })
    const address = await listening(front)
    for (const n of [1, 2, 3]) {
      expect((await ask(address, { body: '{}' })).status).toBe(200)
      expect(bodies.length).toBe(n)
    }
  })

  test('one that rests is closed by the gateway, before an upstream would close it', async () => {
    const { url, bodies, newest } = await keeping()
    const { gateway } = await gatewayTo(url, { restMs: 1 })
    const send = (): Promise<Got> => ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{}' })
    await send()
    const first = newest()
    if (!first.destroyed) await once(first, 'close')
    expect((await send()).status).toBe(200)
    expect([newest() === first, bodies.length]).toEqual([false, 2])
  })

  test.each([
    ['GET', [200, 3]],
    ['OPTIONS', [200, 3]],
    ['DELETE', ['broken', 2]],
    ['POST', ['broken', 2]],
  ])('a %s without a body on one that closes: only what changes nothing is sent again', async (method, wanted) => {
    let count = 0
    const server = createServer((request, response) => {
      count += 1
      if (count === 2) request.socket.resetAndDestroy()
      else response.end()
    })
    const { gateway } = await gatewayTo(await listening(server))
    const send = (): Promise<number | 'broken'> =>
      ask(`${gateway.url}/v1/files/f`, { method, headers: { 'x-api-key': 'k' } }).then(
        ({ status }) => status,
        () => 'broken' as const,
      )
    expect(await send()).toBe(200)
    expect([await send(), count]).toEqual(wanted)
  })

  test('a call that never left is a failure without a bill to wait for', async () => {
    const billsPath = join(folder(), 'bills.jsonl')
    const { gateway } = await gatewayTo('http://127.0.0.1:1', { billsPath })
    const got = await ask(`${gateway.url}/v1/messages`, {
      headers: { ...JSON_TYPE, 'x-claude-code-session-id': 's' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], tools: [{ name: 'Bash' }] }),
    })
    expect(got.status).toBe(502)
    expect(gateway.ledger.sessions[0]).toMatchObject({ requests: 1, failures: 1 })
    await gateway.close()
    expect(() => readFileSync(billsPath)).toThrow('ENOENT')
  })
})
