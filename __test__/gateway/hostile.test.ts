/** Hostile requests: the client gets the answer that it would have got without us, and nothing is lost. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as zlib from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { folder } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { listening } from '../../rig/listening.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, long, looping, upstream } from './support.ts'

afterEach(cleanUp)

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

describe('bodies', () => {
  test.each([
    [
      'deeply nested',
      `{"model":"m","tools":[{"name":"mcp__context__activate"}],"messages":[{"role":"user","content":${'['.repeat(300_000)}${']'.repeat(300_000)}}]}`,
    ],
    [
      'a hundred thousand fields',
      `{"model":"m","tools":[{"name":"x"}],"messages":[{"role":"user","content":[{"type":"text","text":"x",${Array.from({ length: 100_001 }, (_, n) => `"f${n}":1`).join()}}]}]}`,
    ],
    ['roles that do not exist', '{"model":"m","tools":[{"name":"x"}],"messages":[{"role":7,"content":{}},{"role":"king"}]}'],
    ['no model', '{"tools":[{"name":"x"}],"messages":[{"role":"user","content":"x"}]}'],
    ['a model that is not a text', '{"model":{"a":1},"tools":[{"name":"x"}],"messages":[{"role":"user","content":"x"}]}'],
    [
      'results without calls',
      '{"model":"m","tools":[{"name":"x"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"none","content":[]}]}]}',
    ],
    ['a forbidden name', '{"model":"m","__proto__":{"a":1},"tools":[{"name":"x"}],"messages":[{"role":"user","content":"x"}]}'],
  ])('%s passes as it is, twice, and the next one is served', async (_, body) => {
    const { url, seen } = await upstream((_, response) => response.writeHead(400).end('no'))
    const { gateway } = await gatewayTo(url)
    for (const path of ['/v1/messages', '/v1/messages', '/v1/chat/completions', '/v1/responses']) {
      const sent = path.endsWith('responses') ? body.replace('"messages":', '"input":') : body
      const got = await ask(`${gateway.url}${path}`, { headers: JSON_TYPE, body: sent })
      expect([path, got.status, got.text]).toEqual([path, 400, 'no'])
      expect(seen.at(-1)!.body.toString() === sent).toBe(true)
    }
  })

  test('an unknown model is edited like any other', async () => {
    const { server, warnings, loop } = await looping()
    loop.model = 'made-tomorrow-9'
    for (let n = 0; n < 30; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    expect(server.requests.at(-1)!.raw.toString()).toContain('toolcall_ref id=')
    expect(server.requests.at(-1)!.body.model).toBe('made-tomorrow-9')
    expect(warnings).toEqual([])
  })

  test('a conversation in gzip is edited, and goes out plain', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    const loop = new AnthropicLoop(gateway)
    loop.encode = (body) => ({ body: zlib.gzipSync(body), headers: { 'content-encoding': 'gzip' } })
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    expect(seen[0]!.request.headers['content-encoding']).toBe('gzip')
    expect(seen.at(-1)!.request.headers['content-encoding']).toBeUndefined()
    expect(seen.at(-1)!.body.toString()).toContain('toolcall_ref id=')
  })

  test('zstd is read where Node can; elsewhere it passes, and the user is told', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway, warnings } = await gatewayTo(url)
    const loop = new AnthropicLoop(gateway)
    loop.encode = (body) => ({ body: inZstd(body), headers: { 'content-encoding': 'zstd' } })
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const last = seen.at(-1)!
    if ('zstdDecompress' in zlib) {
      expect(last.request.headers['content-encoding']).toBeUndefined()
      expect(last.body.toString()).toContain('toolcall_ref id=')
      expect(warnings).toEqual([])
    } else {
      expect(last.request.headers['content-encoding']).toBe('zstd')
      expect(last.body.subarray(0, 4).toString('hex')).toBe('28b52ffd')
      expect(warnings).toEqual([expect.stringContaining('zstd')])
    }
  })

  test('a body that grows without end when it is decoded passes as it is', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    const body = zlib.gzipSync(Buffer.alloc(300 << 20, ' '))
    await ask(`${gateway.url}/v1/messages`, { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body })
    expect(seen[0]!.body.equals(body)).toBe(true)
  })
})

describe('clients and servers that leave', () => {
  test('a client that leaves at any byte of its answer ends the request upstream, and its retry has the same bytes', async () => {
    const piece = `data: ${JSON.stringify({ type: 'x', text: 'y'.repeat(200) })}\n\n`
    const left: Promise<unknown>[] = []
    const { url, seen } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let n = 0; n < 10; n += 1) response.write(piece)
      left.push(once(response, 'close'))
    })
    const { gateway } = await gatewayTo(url)
    const { port } = new URL(gateway.url)
    const messages: object[] = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }]
    for (let n = 0; n < 12; n += 1) {
      messages.push({ role: 'assistant', content: [{ type: 'tool_use', id: `t${n}`, name: 'Bash', input: { command: `cat ${n}` } }] })
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: `t${n}`, content: long(`n${n}`) }] })
      const tools = [{ name: 'Bash' }, { name: 'mcp__context__activate' }]
      const body = JSON.stringify({ model: 'claude-sonnet-4-5', stream: true, tools, messages })
      const wire = `POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-claude-code-session-id: s\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
      const forms: string[] = []
      for (const bytes of [1, 100 + 137 * n]) {
        const socket = connect(Number(port), '127.0.0.1')
        onCleanUp(() => void socket.destroy())
        socket.write(wire)
        let got = 0
        while (got < bytes) got += ((await once(socket, 'data')) as [Buffer])[0].length
        socket.destroy()
        await left.at(-1)
        forms.push(seen.at(-1)!.body.toString())
      }
      expect(forms[1]).toBe(forms[0])
    }
    expect(seen.length).toBe(24)
    expect(seen.at(-1)!.body.toString()).toContain('toolcall_ref id=')
  })

  test('an upstream that breaks off at any byte breaks off there', async () => {
    const whole = `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 90\r\n\r\n${'data: {"type":"message_stop"}\n'.repeat(3)}`
    let most = 0
    const { createServer: serve } = await import('node:net')
    const server = serve((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write(whole.slice(0, most))
        socket.end()
      })
    })
    const url = await listening(server)
    const { gateway } = await gatewayTo(url)
    const outcome = (address: string): Promise<string> =>
      ask(`${address}/v1/messages`, { headers: JSON_TYPE, body: '{}' }).then(
        ({ status, text, isBroken }) => `${status} ${isBroken} ${status === 502 ? '' : text}`,
        () => 'no answer',
      )
    for (most = 0; most < whole.length; most += 11) {
      const [plain, through] = [await outcome(url), await outcome(gateway.url)]
      // Without a whole head there is nothing to pass on, and the gateway says why.
      expect([most, through]).toEqual([most, plain === 'no answer' ? '502 false ' : plain])
    }
  })
})

describe('redirects', () => {
  test.each([
    ['/v2/v1/messages', (own: string) => `/tok/${own}/v2/v1/messages`],
    ['v2', (own: string) => `/tok/${own}/v1/v2`],
    ['https://elsewhere.example/v1', () => 'https://elsewhere.example/v1'],
    ['http://[', () => 'http://['],
  ])('to %s', async (location, wanted) => {
    const { url } = await upstream((_, response) => response.writeHead(308, { location }).end())
    const { gateway } = await gatewayTo(url, { token: 'tok' })
    const got = await ask(`${gateway.url}/anthropic/v1/messages`, { headers: JSON_TYPE, body: '{}' })
    expect([got.status, got.headers.location]).toEqual([308, wanted(url)])
  })

  test('a client that follows one on the same server arrives, with its credentials', async () => {
    const { url, seen } = await upstream(({ request }, response) => {
      if (request.url === '/v1/messages') response.writeHead(308, { location: '/moved/v1/messages' }).end()
      else response.end('here')
    })
    const { gateway } = await gatewayTo(url, { token: 'tok' })
    const got = await fetch(`${gateway.url}/anthropic/v1/messages`, { method: 'POST', headers: { authorization: 'Bearer t', ...JSON_TYPE }, body: '{"a":1}' })
    expect(await got.text()).toBe('here')
    expect(seen.at(-1)!.request.headers.authorization).toBe('Bearer t')
    expect(seen.at(-1)!.body.toString()).toBe('{"a":1}')
  })
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0
if (!hasOpenssl) process.stderr.write('skipped: certificates that do not match (openssl is missing)\n')

describe.skipIf(!hasOpenssl)('certificates', () => {
  /** A server whose certificate is for a name. */
  async function secure(name: string): Promise<{ url: string; certificate: string; requests: string[] }> {
    const path = folder()
    const [key, cert] = [join(path, 'key.pem'), join(path, 'cert.pem')]
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${/^\d/.test(name) ? 'IP' : 'DNS'}:${name}`]
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject],
      { stdio: 'ignore' },
    )
    const requests: string[] = []
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
      requests.push(`${request.method} ${request.headers.authorization}`)
      response.end('secret answer')
    })
    return { url: (await listening(server)).replace('http', 'https'), certificate: cert, requests }
  }

  const post = async (url: string, env: Record<string, string>): Promise<{ status: number; text: string }> => {
    const { gateway } = await gatewayTo(url, { env })
    return ask(`${gateway.url}/v1/messages`, { headers: { ...JSON_TYPE, authorization: 'Bearer t' }, body: '{}' })
  }

  test('an unsigned one is refused before anything is sent, and the answer says so', async () => {
    const { url, requests } = await secure('127.0.0.1')
    const { status, text } = await post(url, {})
    expect([status, text]).toEqual([502, expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT')])
    expect(requests).toEqual([])
  })

  test('one for another name is refused, and one that the environment trusts is not', async () => {
    const other = await secure('other.example')
    const wrong = await post(other.url, { SSL_CERT_FILE: other.certificate })
    expect([wrong.status, wrong.text]).toEqual([502, expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID')])
    expect(other.requests).toEqual([])
    const own = await secure('127.0.0.1')
    const right = await post(own.url, { SSL_CERT_FILE: own.certificate })
    expect([right.status, right.text]).toEqual([200, 'secret answer'])
    expect(own.requests).toEqual(['POST Bearer t'])
  })
})

test('a second gateway on one port says so, and the first continues', async () => {
  const { url } = await upstream((_, response) => response.end('{}'))
  const { gateway } = await gatewayTo(url)
  const { port } = new URL(gateway.url)
  const ended = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, [START, 'gateway', '--listen', port, '--store', join(folder(), 'context.db')], (error, _, stderr) =>
      resolve({ code: error?.code, stderr }),
    )
  })
  expect(ended).toEqual({ code: 2, stderr: `pi-context-manager: 127.0.0.1:${port} is in use, perhaps by another gateway; name another port with --listen\n` })
  expect((await ask(`${gateway.url}/v1/messages`, { headers: JSON_TYPE, body: '{}' })).status).toBe(200)
})

/** A frame of zstd whose blocks are not compressed (RFC 8878, 3.1.1). */
function inZstd(body: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUInt32LE(0xfd2fb528, 0)
  // One segment, with its size in four bytes.
  head.writeUInt8(0b1010_0000, 4)
  head.writeUInt32LE(body.length, 5)
  const blocks: Buffer[] = []
  for (let at = 0; at < body.length || at === 0; at += 65_536) {
    const block = body.subarray(at, at + 65_536)
    const isLast = at + 65_536 >= body.length ? 1 : 0
    const size = Buffer.alloc(3)
    size.writeUIntLE((block.length << 3) | isLast, 0, 3)
    blocks.push(size, block)
  }
  return Buffer.concat([head, ...blocks])
}
