/** Answers of servers that break off, make no sense, or use what is rare: a client gets as much as without the gateway. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { answerTo, listening } from '../../rig/listening.ts'
import { gatewayTo } from './support.ts'

afterEach(cleanUp)

/** A server that answers each whole request on a connection by `answer`; `n` counts all of them. Returns its address. */
async function serving(answer: (socket: Socket, n: number) => void): Promise<string> {
  let n = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    let got = ''
    socket.on('data', (data: Buffer) => {
      got += data.toString('latin1')
      if (!/\r\n\r\n\{[^]*\}$/.test(got)) return
      got = ''
      answer(socket, (n += 1))
    })
  })
  return await listening(server)
}

/** Sends a request over a separate connection. Returns all that comes until the other side closes it. */
function talk(url: string, path = '/v1/messages'): Promise<string> {
  return answerTo(url, `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`)
}

/** The parts of an answer on the wire: status, the body as far as it came, and whether that is all of it. */
function read(wire: string): { status: number; body: string; isWhole: boolean } {
  const [head = '', ...parts] = wire.split('\r\n\r\n')
  const rest = parts.join('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0)
  const length = /content-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) return { status, body: rest, isWhole: rest.length === Number(length) }
  if (!/transfer-encoding: .*chunked/i.test(head)) return { status, body: rest, isWhole: status !== 0 }
  let body = ''
  for (let at = 0; ;) {
    const size = /^([\da-f]+)\r\n/i.exec(rest.slice(at))
    if (size === null) return { status, body, isWhole: false }
    const [from, bytes] = [at + size[0].length, Number.parseInt(size[1]!, 16)]
    if (bytes === 0) return { status, body, isWhole: rest.endsWith('\r\n\r\n') }
    body += rest.slice(from, from + bytes)
    at = from + bytes + 2
  }
}

const REFUSED = `{"type":"error","error":{"message":"${'thinking is bound to what came before it. '.repeat(4)}"}}`

/** Heads of an answer, and how its body is written in pieces. */
const FRAMES: [name: string, head: (length: number) => string, piece: (bytes: Buffer) => Buffer][] = [
  ['with a length', (length) => `Content-Length: ${length}\r\n`, (bytes) => bytes],
  [
    'in chunks',
    () => 'Transfer-Encoding: chunked\r\n',
    (bytes) => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
  ],
]

/** The ways for a server to end a connection. */
const ENDS: [name: string, end: (socket: Socket) => void][] = [
  ['an end', (socket) => void socket.end()],
  ['a reset', (socket) => void socket.resetAndDestroy()],
]

describe('an answer that breaks off', () => {
  test.each(
    [200, 400, 404, 429, 500].flatMap((status) =>
      FRAMES.flatMap((frame) =>
        ENDS.flatMap((end) => [1, 2, 5].flatMap((pieces) => ['', 'gzip'].map((coding) => [status, frame[0], end[0], pieces, coding, frame, end] as const))),
      ),
    ),
  )('%i %s by %s behind piece %i %s reaches the client up to there', async (status, _frame, _end, pieces, coding, [, head, piece], [, end]) => {
    const body = coding === '' ? Buffer.from(REFUSED) : gzipSync(REFUSED)
    const share = Math.ceil(body.length / 8)
    const url = await serving((socket) => {
      socket.setNoDelay(true)
      socket.write(
        `HTTP/1.1 ${status} Status\r\nContent-Type: application/json\r\n${coding === '' ? '' : `Content-Encoding: ${coding}\r\n`}${head(body.length)}\r\n`,
      )
      for (let n = 0; n < pieces - 1; n += 1) socket.write(piece(body.subarray(n * share, (n + 1) * share)))
      // A reset takes back what has not been read: it waits until all of it is.
      socket.write(piece(body.subarray((pieces - 1) * share, pieces * share)), () => socket.write('', () => setImmediate(() => end(socket))))
    })
    const { gateway } = await gatewayTo(url)
    const { body: got, ...rest } = read(await talk(gateway.url))
    expect(rest).toEqual({ status, isWhole: false })
    expect(Buffer.from(got, 'latin1').equals(body.subarray(0, pieces * share))).toBe(true)
  })
})

// A refusal comes together with the reset, and then a client in Node sees an end: only that of HTTP/1.1 can be tried.
test.each(
  ['1.0', '1.1'].flatMap((version) =>
    ['HTTP/1.0 200 OK', 'HTTP/1.1 200 OK\r\nConnection: close'].flatMap((head) =>
      [200, ...(version === '1.0' ? [] : [400])].map((status) => [version, head.replace('200', String(status))] as const),
    ),
  ),
)('a client of HTTP/%s sees that an answer without a frame, %j, is reset', async (version, head) => {
  let reset = (): void => {}
  const url = await serving((socket) => {
    reset = () => socket.resetAndDestroy()
    socket.write(`${head}\r\n\r\n{"half":`)
  })
  const { gateway } = await gatewayTo(url)
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  onCleanUp(() => void socket.destroy())
  let [wire, isReset] = ['', false]
  socket.on('error', () => (isReset = true))
  socket.on('data', (data: Buffer) => {
    wire += data.toString('latin1')
    // The only piece of a refusal is held until its end.
    if (wire.includes('half') || head.includes('400')) reset()
  })
  socket.write(`POST /v1/messages HTTP/${version}\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nContent-Length: 2\r\n\r\n{}`)
  await once(socket, 'close').catch(() => once(socket, 'close'))
  expect(wire).toContain('{"half":')
  expect(isReset || !read(wire).isWhole).toBe(true)
})

describe('a client that reads slowly', () => {
  // About as much as the connections on the way hold by themselves.
  test.each([200, 400].flatMap((status) => FRAMES.flatMap((frame) => [1, 2, 4].map((megabytes) => [status, frame[0], megabytes, frame] as const))))(
    'gets all of an answer %i %s of %i MB that breaks off',
    async (status, _frame, megabytes, [, head, piece]) => {
      const part = Buffer.alloc(1 << 16, 'x')
      const parts = megabytes << 4
      let isFull = (): void => {}
      const full = new Promise<void>((resolve) => (isFull = resolve))
      const url = await serving((socket) => {
        socket.once('close', () => isFull())
        socket.write(`HTTP/1.1 ${status} Status\r\n${head(100 << 20)}\r\n`)
        for (let n = 0; n < parts; n += 1) socket.write(piece(part))
        socket.end()
        // The client of a machine where they hold less begins once nothing has moved for a while.
        setTimeout(isFull, 2_000).unref()
      })
      const { gateway } = await gatewayTo(url)
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
      onCleanUp(() => void socket.destroy())
      socket.on('error', () => {})
      socket.write('POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}')
      await full
      const got: Buffer[] = []
      socket.on('data', (data: Buffer) => got.push(data))
      await once(socket, 'close')
      const { body, ...rest } = read(Buffer.concat(got).toString('latin1'))
      expect({ ...rest, size: body.length }).toEqual({ status, isWhole: false, size: parts * part.length })
    },
  )
})

/** Answers that are not HTTP, or that Node does not take for it. */
const SENSELESS = [
  'SSH-2.0-OpenSSH_9.6\r\n',
  'HTTP/9.9 200 OK\r\n\r\n',
  'HTTP/1.1 2x0 OK\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(300_000)}\r\n\r\n`,
  '\x16\x03\x01\x02\x00\x01',
]

describe('an answer that makes no sense', () => {
  test.each(SENSELESS.flatMap((text) => [1, 2].map((first) => [text.slice(0, 40), first, text] as const)))(
    '%j as answer %i is an error in a sentence',
    async (_name, first, text) => {
      const url = await serving((socket, n) => void (n < first ? socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}') : socket.write(text)))
      const { gateway } = await gatewayTo(url)
      for (const path of ['/v1/messages', '/v1/files']) {
        for (let n = 1; n < first; n += 1) expect(read(await talk(gateway.url, path))).toEqual({ status: 200, body: '{}', isWhole: true })
        const { status, body } = read(await talk(gateway.url, path))
        expect([status, JSON.parse(body)]).toEqual([
          502,
          { type: 'error', error: { type: 'gateway_error', message: expect.stringMatching(/^pi-context-manager: .*\bHPE_/) } },
        ])
        if (first > 1) return
      }
    },
  )
})

describe('what is rare in an answer', () => {
  const bodyOf = (wire: string): string => wire.slice(wire.indexOf('\r\n\r\n') + 4)

  test('trailers pass, except those that only a head may have', async () => {
    const url = await serving(
      (socket) =>
        void socket.write(
          Buffer.from(
            'HTTP/1.1 200 OK\r\nTrailer: X-Checksum, X-Cost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Checksum: abc\r\nX-cost: caf\xe9\r\nSet-Cookie: a=b\r\nContent-Type: text/x\r\nX-Checksum: def\r\n\r\n',
            'latin1',
          ),
        ),
    )
    const { gateway } = await gatewayTo(url)
    for (const path of ['/v1/messages', '/v1/files']) {
      const wire = await talk(gateway.url, path)
      expect(wire).toMatch(/\r\nTrailer: X-Checksum, X-Cost\r\n/)
      expect(bodyOf(wire)).toBe('2\r\n{}\r\n0\r\nX-Checksum: abc\r\nX-cost: caf\xe9\r\nX-Checksum: def\r\n\r\n')
    }
  })

  test.each([200, 400])('a coding of the transfer stays named, and its figures are read, with the status %i', async (status) => {
    const body = gzipSync(JSON.stringify({ type: 'message', usage: { input_tokens: 3, output_tokens: 5 }, error: { message: 'x' } }))
    const url = await serving((socket) => {
      socket.write(`HTTP/1.1 ${status} OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${body.length.toString(16)}\r\n`)
      socket.write(body)
      socket.write('\r\n0\r\n\r\n')
    })
    const { gateway } = await gatewayTo(url)
    const message = JSON.stringify({ model: 'claude-sonnet-4-5', tools: [{ name: 'Bash' }], messages: [{ role: 'user', content: 'x' }] })
    const wire = await answerTo(
      gateway.url,
      `POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-claude-code-session-id: s\r\nConnection: close\r\nContent-Length: ${message.length}\r\n\r\n${message}`,
    )
    expect(wire).toMatch(/\r\nTransfer-Encoding: gzip, chunked\r\n/)
    expect(Buffer.from(read(wire).body, 'latin1').equals(body)).toBe(true)
    await gateway.close()
    if (status === 200) expect(gateway.ledger.sessions[0]!.calls[0]).toMatchObject({ billed: { input: 3, output: 5 } })
  })

  test.each(['HEAD', 'GET'])('an answer to %s, and a client of HTTP/1.0, have no chunks', async (method) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(`HTTP/1.1 ${method === 'HEAD' ? '200 OK' : '204 None'}\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n`))
    })
    const { gateway } = await gatewayTo(await listening(server))
    for (const version of ['1.0', '1.1']) {
      const wire = await answerTo(gateway.url, `${method} /v1/models HTTP/${version}\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nConnection: close\r\n\r\n`)
      expect(wire).toMatch(/^HTTP\/1\.1 20[04] /)
      expect(wire).not.toMatch(/trailer|chunked/i)
      expect(bodyOf(wire)).toBe('')
    }
  })
})

test('a request keeps its trailers', async () => {
  for (const path of ['/v1/messages', '/v1/files']) {
    let sent = ''
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data: Buffer) => {
        sent += data.toString('latin1')
        if (/\r\n0\r\n[^]*\r\n\r\n$/.test(sent)) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      })
    })
    const { gateway } = await gatewayTo(await listening(server))
    await answerTo(
      gateway.url,
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: k\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Checksum: abc\r\n\r\n`,
    )
    expect([path, sent.slice(sent.indexOf('\r\n\r\n') + 4)]).toEqual([path, '2\r\n{}\r\n0\r\nX-Checksum: abc\r\n\r\n'])
  }
})
