/** Requests that a browser makes for a site get nothing, and programs keep what they had. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { answerTo } from '../../rig/listening.ts'
import { ask, gatewayTo, JSON_TYPE, upstream } from './support.ts'
import type { Got } from './support.ts'

afterEach(cleanUp)

const BODY = '{"model":"m","messages":[{"role":"user","content":"x"}]}'

type Headers = Record<string, string>

/** Headers that a browser adds, by the kind of request. */
const BY_BROWSERS: [string, Headers][] = [
  ['a navigation', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' }],
  ['an address that the user opens', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none', 'sec-fetch-user': '?1' }],
  ['a navigation in an old browser', { 'upgrade-insecure-requests': '1', accept: 'text/html,application/xhtml+xml' }],
  ['a navigation, twice', { 'sec-fetch-mode': 'navigate, navigate' }],
  ['a nested navigation', { 'sec-fetch-mode': 'nested-navigate' }],
  ['a frame', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-origin' }],
  ...[
    'image',
    'script',
    'style',
    'font',
    'audio',
    'video',
    'track',
    'object',
    'embed',
    'manifest',
    'worker',
    'sharedworker',
    'serviceworker',
    'audioworklet',
    'report',
    'json',
    'made-tomorrow',
  ].map((dest): [string, Headers] => [`the destination ${dest}`, { 'sec-fetch-dest': dest, 'sec-fetch-mode': 'no-cors' }]),
  ['no destination but its mode', { 'sec-fetch-mode': 'websocket' }],
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['another port', { 'sec-fetch-site': 'same-site' }],
  ['a document on the origin itself', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }],
  ['in capital letters', { 'Sec-Fetch-Site': 'Cross-Site' }],
  ['the script of a service worker', { 'service-worker': 'script' }],
  ['a prefetch', { 'sec-purpose': 'prefetch' }],
  ['an old prefetch', { purpose: 'prefetch' }],
  ['a foreign origin', { origin: 'https://evil.example' }],
  ['a foreign origin on this machine', { origin: 'http://127.0.0.1:1' }],
  ['no origin at all', { origin: 'null' }],
  ['a file', { origin: 'file://' }],
  ['a name that begins like ours', { origin: 'http://127.0.0.1.evil.example' }],
]

const PATHS = ['/v1/messages', '/anthropic/v1/messages', '/openai/models', '/v1/files', '/_context/mcp', '/other']

/** All addresses by which a request can leave a gateway. */
function addresses(gateway: Gateway, server: string): string[] {
  return [...PATHS, `/${server}/x.html`, `/${server.replace('//', '/')}/x.html`].map((path) => `${gateway.url}${path}`)
}

describe('a browser that works for a site', () => {
  test.each(BY_BROWSERS)('%s gets nothing, and nothing leaves the gateway', async (_name, headers) => {
    const { url, seen } = await upstream((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<script>evil()</script>'))
    for (const token of [undefined, 'tok']) {
      const { gateway } = await gatewayTo(url, token === undefined ? {} : { token })
      for (const address of addresses(gateway, url)) {
        for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD']) {
          const got = await ask(address, {
            method,
            headers: { ...JSON_TYPE, authorization: `Bearer ${gateway.secret}`, ...headers },
            ...(method === 'POST' ? { body: BODY } : {}),
          })
          expect([address, method, got.status]).toEqual([address, method, 403])
          expect(got.headers['access-control-allow-origin']).toBeUndefined()
          expect(got.text).not.toContain('evil()')
        }
      }
    }
    expect(seen).toEqual([])
  })

  test.each(['evil.example', '127.0.0.1.evil.example', 'me.localhost', '0.0.0.0', '[::ffff:127.0.0.1]', ''])(
    'a name that leads here, %j, is refused before anything else',
    async (name) => {
      const { url, seen } = await upstream((_, response) => response.end('{}'))
      const { gateway } = await gatewayTo(url)
      const { port } = new URL(gateway.url)
      for (const path of ['/', '/v1/messages', `/${url}/x`])
        expect((await ask(`${gateway.url}${path}`, { headers: { host: `${name}:${port}` }, body: '{}' })).status).toBe(421)
      expect(seen).toEqual([])
    },
  )

  test('a WebSocket is refused on both ports', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const page = new URL(gateway.pageUrl as string)
    for (const [port, path] of [
      [new URL(gateway.url).port, '/v1/responses'],
      [page.port, '/_context/events'],
    ]) {
      const got = await answerTo(
        `http://127.0.0.1:${port}`,
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`,
      )
      expect(got).not.toContain(' 101 ')
    }
  })
})

describe('a program', () => {
  test.each([
    ['nothing of a browser', {}],
    ["Node's fetch", { 'sec-fetch-mode': 'cors' }],
    ["Electron's net.fetch", { 'sec-fetch-mode': 'no-cors', 'sec-fetch-site': 'none', 'sec-fetch-dest': 'empty' }],
    ['one that asks for anything', { accept: '*/*', referer: 'https://agent.example/', 'user-agent': 'Mozilla/5.0 (compatible; agent)' }],
  ] as [string, Headers][])('%s passes', async (_name, headers) => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url)
    for (const path of ['/v1/messages', '/anthropic/v1/messages', `/${url}/v1/messages`])
      expect((await ask(`${gateway.url}${path}`, { headers: { ...JSON_TYPE, ...headers }, body: BODY })).status).toBe(200)
    expect(seen.length).toBe(3)
  })

  test.each(['vscode-webview://1a2b', 'app://obsidian.md', 'tauri://localhost'])('of the origin %s needs the token', async (origin) => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const headers = { ...JSON_TYPE, origin, 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'empty' }
    const status = async (options: object): Promise<number> =>
      (await ask(`${(await gatewayTo(url, options)).gateway.url}/v1/messages`, { headers, body: BODY })).status
    expect(await status({})).toBe(403)
    expect(await status({ token: 'tok' })).toBe(200)
    expect(seen.length).toBe(1)
  })

  test('an answer keeps its headers but those that act on an origin', async () => {
    const wide = [
      'Set-Cookie: a=1; Path=/',
      'set-cookie: b=2',
      'Service-Worker-Allowed: /',
      'Clear-Site-Data: "*"',
      'Strict-Transport-Security: max-age=9',
      'Alt-Svc: h3=":443"',
      'NEL: {}',
      'Report-To: {}',
      'Accept-CH: UA',
      'Origin-Agent-Cluster: ?1',
      'Sec-Session-Registration: (ES256);path="/s"',
      'Activate-Storage-Access: load',
      'Attribution-Reporting-Register-Source: {}',
    ]
    const kept = ['X-Request-Id: r', 'anthropic-ratelimit-requests-remaining: 3', 'Cache-Control: no-cache', 'ETag: "e"', 'Access-Control-Allow-Origin: *']
    const flat = (lines: string[]): string[] => lines.flatMap((line) => line.split(/: (.*)/).slice(0, 2))
    const { url } = await upstream((_, response) => response.writeHead(200, flat([...wide, ...kept])).end('{}'))
    const { gateway } = await gatewayTo(url)
    for (const path of ['/v1/messages', '/v1/models', `/${url}/x`]) {
      const { raw } = await ask(`${gateway.url}${path}`, { headers: JSON_TYPE, body: BODY })
      const names = raw.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
      expect(names.filter((name) => wide.some((line) => line.toLowerCase().startsWith(`${name}:`)))).toEqual([])
      expect(raw).toEqual(expect.arrayContaining(flat(kept)))
    }
  })
})

describe('where the page is', () => {
  const browser = { accept: 'text/html,*/*', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none' }
  const from = (address: string, headers: Headers = {}): Promise<Got> => ask(address, { method: 'GET', headers })

  test.each([undefined, 'tok'])('the bare address says it, with the token %s', async (token) => {
    const { url, seen } = await upstream((_, response) => response.end('upstream'))
    const { gateway } = await gatewayTo(url, token === undefined ? {} : { token })
    const { origin } = new URL(gateway.url)
    const page = new URL(gateway.pageUrl as string)
    const shown = await from(`${origin}/`, browser)
    expect([shown.status, shown.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(shown.text).toContain(`${page.origin}/_context/`)
    expect(shown.text).not.toContain(gateway.page.key)
    expect(shown.text).not.toContain('<script')
    const lost = await from(`${origin}/foo`, browser)
    expect([lost.status, lost.text.includes(`${page.origin}/_context/`)]).toEqual([403, true])
    if (token === undefined) expect((await from(`${origin}/`)).text).toContain(`its page is at ${page.origin}/_context/ with the key`)
    expect(seen).toEqual([])
  })

  test('the bare address of an upstream is the upstream', async () => {
    const { url, seen } = await upstream((_, response) => response.end('upstream'))
    const { gateway } = await gatewayTo(url)
    for (const [path, headers] of [
      ['/', { 'x-api-key': 'k' }],
      ['/', { 'anthropic-version': '2023-06-01' }],
      ['/anthropic/', {}],
      ['/openai', {}],
    ] as [string, Headers][])
      expect((await from(`${gateway.url}${path}`, headers)).text).toBe('upstream')
    expect(seen.length).toBe(4)
  })

  test('a wrong key and a wrong path get a sentence that a person can read', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const { origin } = new URL(gateway.pageUrl as string)
    for (const [path, status, text] of [
      ['/_context/?key=wrong', 401, 'key that the terminal shows'],
      ['/_context/', 401, 'key that the terminal shows'],
      ['/', 404, '/_context/'],
      ['/http://127.0.0.1:1/', 404, '/_context/'],
    ] as const) {
      const got = await from(`${origin}${path}`, browser)
      expect([path, got.status, got.headers['content-type']]).toEqual([path, status, 'text/html; charset=utf-8'])
      expect(got.text).toContain(text)
    }
  })

  test('its origin is its own: none of its addresses leads anywhere', async () => {
    const { url, seen } = await upstream((_, response) => response.end('upstream'))
    const { gateway } = await gatewayTo(url)
    const { origin } = new URL(gateway.pageUrl as string)
    expect(origin).not.toBe(new URL(gateway.url).origin)
    for (const path of [...PATHS, `/${url}/x`, `/_context/../${url}/x`, `/_context/mcp`]) {
      for (const method of ['GET', 'POST'])
        expect(
          (await ask(`${origin}${path}`, { method, headers: { authorization: `Bearer ${gateway.page.key}` }, ...(method === 'POST' ? { body: BODY } : {}) }))
            .text,
        ).not.toContain('upstream')
    }
    expect(seen).toEqual([])
  })
})
