/** Headers on their way through: all are kept, except those that belong to one connection. */
import type { IncomingMessage } from 'node:http'

/** Flat, as node has them in `rawHeaders`: name, value, name, value. */
export type RawHeaders = readonly string[]

/** Headers of one connection (RFC 9110, 7.6.1). `expect` is answered by our own server. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])

/**
 * Headers of an answer that act on the origin or the host that it comes from, beyond the answer itself. A client takes this
 * machine for that host: such a header would hold for everything else on it.
 */
export const ORIGIN_WIDE: readonly string[] = [
  'set-cookie',
  'set-cookie2',
  'service-worker-allowed',
  'clear-site-data',
  'strict-transport-security',
  'public-key-pins',
  'public-key-pins-report-only',
  'expect-ct',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'accept-ch',
  'critical-ch',
  'origin-agent-cluster',
  'origin-trial',
  'permissions-policy',
  'set-login',
  'sec-session-registration',
  'sec-session-challenge',
  'secure-session-registration',
  'secure-session-challenge',
  'activate-storage-access',
  'attribution-reporting-register-source',
  'attribution-reporting-register-trigger',
  'observe-browsing-topics',
  'speculation-rules',
  'use-as-dictionary',
]

/**
 * Headers that are for the other end, whatever `Connection` says: those that frame, route and describe a message, and those
 * by which a client proves who it is. Left out, one request would become another one.
 */
const END_TO_END =
  /^(?:host|content-.*|cookie|cache-control|accept(?:-.*)?|user-agent|location|retry-after|.*(?:key|auth|token|secret|session).*|anthropic-.*|openai-.*|chatgpt-.*)$/

/** The headers to pass on. `drop` names further ones, in lower case. */
export function passedOn(raw: RawHeaders, drop: readonly string[] = []): string[] {
  const options = valuesOf(raw, 'connection').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase()))
  const named = options.filter((name) => !END_TO_END.test(name))
  const out = new Set([...drop, ...named])
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase()
    if (!HOP_BY_HOP.has(name) && !out.has(name)) kept.push(raw[at] as string, raw[at + 1] as string)
  }
  return kept
}

/** Methods whose requests have a length even if they have no body (RFC 9110, 8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/**
 * The headers that frame a request's body upstream as the client has framed it: one request stays one, whatever its method
 * is. `body` is all of it unless a `rest` follows.
 */
export function framingOf(
  client: Pick<IncomingMessage, 'headers' | 'method'> & Partial<Pick<IncomingMessage, 'rawTrailers'>>,
  body: Buffer | undefined,
  rest: object | undefined,
): string[] {
  const { 'content-length': length } = client.headers
  // Node ignores an empty coding and goes by the length; another server may read the rest of the list in another way.
  const codings = listIn(client.headers['transfer-encoding'])
  // Node has taken the chunks apart, and nothing but the chunks.
  const isChunked = codings.join().toLowerCase() === 'chunked'
  // Only chunks can have something behind them.
  const hasTrailers = trailersOf(client.rawTrailers ?? []).length > 0
  if (codings.length > 0 && (rest !== undefined || !isChunked || hasTrailers)) return ['Transfer-Encoding', codings.join(', ')]
  const size = rest === undefined ? String(body?.length ?? 0) : length
  const isNeeded = isChunked || length !== undefined || WITH_BODY.has(client.method ?? '') || (body?.length ?? 0) > 0
  return isNeeded ? ['Content-Length', size ?? '0'] : []
}

/**
 * The headers that frame an answer for a client, where node does not choose them itself: codings of the transfer that are
 * still on the body, and the names of its trailers. A client of HTTP/1.0 knows neither.
 */
export function answerFraming(answer: IncomingMessage, client: Pick<IncomingMessage, 'method' | 'httpVersion'>): string[] {
  const hasBody = client.method !== 'HEAD' && answer.statusCode !== 204 && answer.statusCode !== 304
  const codings = listIn(answer.headers['transfer-encoding'])
  if (codings.length === 0 || !hasBody || client.httpVersion !== '1.1') return []
  const trailer = valuesOf(answer.rawHeaders, 'trailer').flatMap((value) => ['Trailer', value])
  return ['Transfer-Encoding', [...transferCodings(answer), 'chunked'].join(', '), ...trailer]
}

/** The codings of a message's transfer that node has not taken off, in the order in which they were applied. */
export function transferCodings({ headers }: Pick<IncomingMessage, 'headers'>): string[] {
  return listIn(headers['transfer-encoding'])
    .map((name) => name.toLowerCase())
    .filter((name) => name !== 'chunked')
}

/** The trailers to pass on, without those that a head alone may have (RFC 9110, 6.5.1). */
export function trailersOf(raw: RawHeaders): [name: string, value: string][] {
  const kept = passedOn(raw, [
    ...ORIGIN_WIDE,
    'content-length',
    'content-encoding',
    'content-type',
    'content-range',
    'host',
    'location',
    'authorization',
    'cookie',
  ])
  return Array.from({ length: kept.length / 2 }, (_, n) => [kept[2 * n] as string, kept[2 * n + 1] as string])
}

/** The names in a list-like header. */
function listIn(value = ''): string[] {
  return value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** All values of a header. */
export function valuesOf(raw: RawHeaders, name: string): string[] {
  const found: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) if ((raw[at] as string).toLowerCase() === name) found.push(raw[at + 1] as string)
  return found
}

/** The headers with a list-like one changed; without it if the new value is empty. A header that was absent goes to the end. */
export function withValue(raw: RawHeaders, name: string, change: (value: string) => string): string[] {
  const kept: string[] = []
  let isFound = false
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const isIt = (raw[at] as string).toLowerCase() === name
    isFound ||= isIt
    const value = isIt ? change(raw[at + 1] as string) : (raw[at + 1] as string)
    if (value !== '' || !isIt) kept.push(raw[at] as string, value)
  }
  const value = isFound ? '' : change('')
  return value === '' ? kept : [...kept, name, value]
}
