/** The destination of a request: below the address of an upstream, and never above it. */
import { describe, expect, test } from 'vitest'
import { routeOf } from '../../lib/gateway/routes.ts'

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
