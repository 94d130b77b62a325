/** The destination of a request: below the address of an upstream, and never above it. */
import { afterEach, describe, expect, test } from 'vitest'
import { routeOf } from '../../lib/gateway/routes.ts'
import { isLoopback } from '../../lib/gateway/upstream.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { answerTo } from '../../rig/listening.ts'
import { ask, gatewayTo, JSON_TYPE, upstream } from './support.ts'

afterEach(cleanUp)

const UPSTREAMS = { anthropic: 'http://127.0.0.1:9/tenant/one/', openai: 'http://127.0.0.1:9/tenant/two' }
const target = (url: string): string | undefined => {
  const route = routeOf(url, {}, UPSTREAMS, undefined)
  return route.kind === 'upstream' ? `${route.target.pathname}${route.target.search}` : undefined
}

describe('a path', () => {
  test.each([
    ['/anthropic/v1/messages?beta=1', '/tenant/one/v1/messages?beta=1'],
    ['/anthropic', '/tenant/one'],
    ['/anthropic/a/../b', '/tenant/one/b'],
    ['/openai/responses', '/tenant/two/responses'],
    ['/v1/messages', '/tenant/one/v1/messages'],
    ['/v1/responses', '/tenant/two/responses'],
  ])('%s goes to %s', (url, expected) => expect(target(url)).toBe(expected))

  test.each(['/anthropic/../_context/', '/anthropic/%2e%2e/x', '/openai/..', '/anthropic/a/../../x', '/v1/messages/../../../x'])(
    '%s does not leave the address of its upstream',
    (url) => {
      const route = routeOf(url, {}, UPSTREAMS, undefined)
      const isBelow = route.kind === 'upstream' && /^\/tenant\/(?:one|two)(?:\/|$)/.test(route.target.pathname)
      expect(isBelow || route.kind === 'refused').toBe(true)
    },
  )
})

const KEYS: Record<string, string>[] = [
  {},
  { authorization: 'Bearer k' },
  { 'x-api-key': 'k' },
  { 'anthropic-version': '2023-06-01' },
  { 'x-goog-api-key': 'k' },
  { 'chatgpt-account-id': 'a' },
]

test.each([
  '/localhost:3456/v1/messages',
  '/garbage/v1/chat/completions?key=s3cret',
  '/router/v1beta/models/g:generateContent',
  '/Anthropic/v1/messages',
  '/anthropicx/v1/messages',
  '/nonsense',
  '/v2/messages',
  '/v1x/messages',
  '//v1/messages',
  '/v1internally',
])('%s belongs to none of the providers, whatever key it has: a sentence, and nothing is sent', async (path) => {
  const { url, seen } = await upstream((_, response) => response.end('{}'))
  const { gateway } = await gatewayTo(url, { upstreams: { anthropic: url, openai: url, gemini: url } })
  for (const headers of KEYS) {
    const { status, text } = await ask(`${gateway.url}${path}`, { headers: { ...JSON_TYPE, ...headers }, body: '{"messages":[]}' })
    expect([status, text]).toEqual([404, expect.stringContaining('no provider is known for /')])
    expect(text).not.toContain('s3cret')
  }
  expect(seen).toEqual([])
})

test.each<[path: string, headers: Record<string, string>, vendor: string]>([
  ['/v1/messages', {}, 'anthropic'],
  ['/v1/models', { 'x-api-key': 'k' }, 'anthropic'],
  ['/v1/models', { 'anthropic-version': '2023-06-01' }, 'anthropic'],
  ['/api/event_logging/batch', { 'x-api-key': 'k' }, 'anthropic'],
  ['/v1/models', {}, 'openai'],
  ['/v1/chat/completions', {}, 'openai'],
  ['/chat/completions', {}, 'openai'],
  ['/responses/r1', {}, 'openai'],
  ['/v1/models', { 'x-goog-api-key': 'k' }, 'gemini'],
  ['/v1beta/models/g:generateContent', {}, 'gemini'],
  ['/upload/v1beta/files', {}, 'gemini'],
  ['/v1internal:generateContent', {}, 'gemini'],
  ['/', { 'x-goog-api-key': 'k' }, 'gemini'],
  ['/', { 'x-api-key': 'k' }, 'anthropic'],
])('%s with %o goes to %s', (path, headers, vendor) => {
  const route = routeOf(path, headers, { anthropic: 'http://anthropic', openai: 'http://openai/v1', gemini: 'http://gemini' }, undefined)
  expect(route.kind === 'upstream' ? route.target.hostname : route).toBe(vendor)
})

test.each(['HTTP://h/x', 'https:/h/x', 'Https://h/x'])('/%s names an address', (path) => {
  const route = routeOf(`/${path}`, {}, UPSTREAMS, undefined)
  expect(route.kind === 'upstream' ? route.target.href : route).toMatch(/^https?:\/\/h\/x$/)
})

test.each([{}, { authorization: 'Bearer k' }, { 'chatgpt-account-id': 'a' }])('nothing but %o names no provider', (headers) => {
  expect(routeOf('/', headers, UPSTREAMS, undefined)).toMatchObject({ kind: 'refused', status: 404 })
})

test('an upstream that is not a web address gets nothing', () => {
  expect(routeOf('/v1/messages', {}, { anthropic: 'localhost:45037' }, undefined)).toMatchObject({ kind: 'refused', status: 400 })
})

describe('a target reaches the upstream as the client has written it', () => {
  const TARGETS = [
    `/v1/files?q='a'&r="b"`,
    `/v1/files?<x>=\`{y}|z^w\\`,
    `/v1/files/it's "quoted"`.replaceAll(' ', '%20'),
    '/v1/files/{id}|<x>^`"',
    '/v1/files?',
    '/v1/files?a=b?c=/../d',
    '/v1/files?a=%27%22%2e%2E%41',
    '/v1/files/%7euser/%2f/%41%zz',
    '/v1/files//a///b/',
    '/v1/files/...',
    '/v1/files/.a/..b/c.',
    '/v1/models/gemini%2F1:countTokens?key=a+b',
    '/v1/files?a#b?c',
    "/v1/messages?beta=true&x='",
    '/v1/responses?api-version="1"',
  ]
  test.each(
    TARGETS.flatMap((written) => ['/openai', '/anthropic', '', '/URL', '/tok/openai'].map((before) => [`${before}${written}`, before, written] as const)),
  )('%s', async (_name, before, written) => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const { gateway } = await gatewayTo(url, { upstreams: { anthropic: url, openai: url }, ...(before.startsWith('/tok') && { token: 'tok' }) })
    const path = before === '/URL' ? `/${url}${written}` : `${before}${written}`
    await answerTo(gateway.url, Buffer.from(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`, 'latin1'))
    // The bare `/v1` of a request to OpenAI is part of its upstream's address.
    const sent = before === '' && !written.startsWith('/v1/messages') ? written.replace('/v1/', '/') : written
    expect(seen.map(({ request }) => request.url)).toEqual([sent])
  })

  test.each([
    ['/openai/a/../b', '/b'],
    ["/openai/a/./b/%2E%2e/c?d='", "/a/c?d='"],
    ['/openai/a\\..\\b', '/b'],
    ['/openai/a/..', '/'],
  ])('but %s is resolved to %s', (url, expected) => {
    const route = routeOf(url, {}, { anthropic: 'http://h', openai: 'http://h' }, undefined)
    expect(route.kind === 'upstream' ? route.path : undefined).toBe(expected)
  })

  test.each([
    ['http://h/caf\u{e9}', '/caf%C3%A9'],
    ['http://h/\u{1f600}/a b/', '/%F0%9F%98%80/a%20b'],
  ])('the path of the upstream %s is written as in a URL', (base, above) => {
    const route = routeOf("/openai/a'b", {}, { anthropic: 'http://h', openai: base }, undefined)
    expect(route.kind === 'upstream' ? route.path : undefined).toBe(`${above}/a'b`)
  })
})

test.each([
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['localhost', true],
  ['[::1]', true],
  ['127.0.0.999', false],
  ['127.0.0.256', false],
  ['127.999.0.1', false],
  ['127.0.0.01', false],
  ['127.0.0', false],
  ['127.0.0.1.example', false],
  ['128.0.0.1', false],
  ['localhost.example', false],
])('%s is this machine: %s', (host, expected) => expect(isLoopback(host)).toBe(expected))
