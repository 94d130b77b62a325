/** The meaning of a request's path: a page or tool of ours, or an address upstream. */
import type { IncomingHttpHeaders } from 'node:http'
import { timingSafeEqual } from 'node:crypto'

/** The upstreams for requests that name no address. */
export interface Upstreams {
  /** Without `/v1`, as in `ANTHROPIC_BASE_URL`. */
  anthropic: string
  /** With `/v1`, as in `OPENAI_BASE_URL`. Absent: OpenAI's API, or ChatGPT's backend for requests with a ChatGPT account. */
  openai?: string
  /** Without `/v1beta`, as in `GOOGLE_GEMINI_BASE_URL`. Absent: Google's API. */
  gemini?: string
}

/** The destination of a request. */
export type GatewayRoute =
  | { kind: 'own'; /** The path after our own prefix, such as `/mcp`. */ path: string }
  | { kind: 'upstream'; target: URL; /** Path and query as the client has written them. */ path: string }
  | { kind: 'refused'; status: number; sentence: string }

/** Our own addresses begin like this. */
export const OWN = '/_context'

/** Paths of OpenAI's API that its clients add to a base URL without `/v1`. */
const OPENAI_PATHS = /^\/(?:responses|chat\/completions|completions|embeddings|models)(?=[/?]|$)/

/** Paths besides `/v1` that Claude Code asks Anthropic's API for. */
const ANTHROPIC_PATHS = /^\/api\//

/** Paths that only Google's APIs have. */
const GEMINI_PATHS = /^\/(?:(?:(?:up|down)load\/)?v1(?:alpha|beta)\d*\/|v1internal:)/

/** Anthropic's API. */
export const ANTHROPIC = 'https://api.anthropic.com'
const GEMINI = 'https://generativelanguage.googleapis.com'
const OPENAI = 'https://api.openai.com/v1'
const CHATGPT = 'https://chatgpt.com/backend-api/codex'

/**
 * Reads the path of a request. With a token, every path begins with it. `/anthropic/…`, `/openai/…` and `/gemini/…` go to the
 * upstreams, `/https://host/…` to any address, `/v1beta/…` and `/v1/…` with Google's key to Gemini, `/v1/messages…` and what has
 * Anthropic's headers to Anthropic, and the rest of `/v1/…` to OpenAI. Any other path is refused.
 */
export function routeOf(url: string, headers: IncomingHttpHeaders, upstreams: Upstreams, token: string | undefined): GatewayRoute {
  let path = url.startsWith('/') ? url : `/${url}`
  if (token !== undefined) {
    const [, first = ''] = /^\/([^/?]*)/.exec(path) ?? []
    if (isSame(first, token)) path = path.slice(first.length + 1) || '/'
    else if (!path.startsWith(`${OWN}/`)) return refused(403, 'the address lacks the token that the gateway was started with')
  }
  if (path === OWN || path.startsWith(`${OWN}/`) || path.startsWith(`${OWN}?`)) return { kind: 'own', path: path.slice(OWN.length) || '/' }
  const named = /^\/(https?:\/\/?.+)$/i.exec(path)?.[1]
  if (named !== undefined) return upstream(named.replace(/^(https?:)\/([^/])/i, '$1//$2'))
  const { anthropic, gemini = GEMINI, openai = headers['chatgpt-account-id'] === undefined ? OPENAI : CHATGPT } = upstreams
  const [, vendor, rest = ''] = /^\/(anthropic|openai|gemini)(\/.*|\?.*|)$/.exec(path) ?? []
  if (vendor !== undefined) return below({ anthropic, openai, gemini }[vendor] as string, rest)
  const isGoogle = headers['x-goog-api-key'] !== undefined
  const isAnthropic = headers['anthropic-version'] !== undefined || headers['x-api-key'] !== undefined
  const isPlain = /^\/v1(?=[/?]|$)/.test(path)
  // Anything else would be guessed, and a guess would send one provider the key of another.
  const isOwn =
    isPlain || (isAnthropic && ANTHROPIC_PATHS.test(path)) || (/^\/(?:\?|$)/.test(path) ? isGoogle || isAnthropic : !isGoogle && OPENAI_PATHS.test(path))
  if (GEMINI_PATHS.test(path) || (isGoogle && isOwn)) return below(gemini, path)
  if (!isOwn) return refused(404, nowhere(path))
  if (isAnthropic || /^\/v1\/(?:messages|complete)\b/.test(path)) return below(anthropic, path)
  return below(openai, path.replace(/^\/v1(?=[/?]|$)/, ''))
}

/**
 * The `Location` of an answer, for a client that believes the gateway to be the upstream: an address at the upstream itself
 * leads through the gateway, so that the client continues as without it, with its credentials. Other addresses stay as they are.
 */
export function redirectFor(location: string, target: URL, prefix: string): string {
  const to = URL.canParse(location, target.href) ? new URL(location, target) : undefined
  return to === undefined || to.origin !== target.origin ? location : `${prefix}/${to.href}`
}

/** Compares two secrets in a time that does not depend on them. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The address of a path below an upstream's own. Dots in it lead no higher. */
function below(base: string, rest: string): GatewayRoute {
  const plain = base.replace(/\/+$/, '')
  const route = upstream(`${plain}${rest}`)
  if (route.kind !== 'upstream' || !URL.canParse(plain)) return route
  const { origin, pathname } = new URL(plain)
  const above = pathname.replace(/\/+$/, '')
  const isBelow = route.target.origin === origin && (route.target.pathname === above || route.target.pathname.startsWith(`${above}/`))
  return isBelow ? route : refused(400, `${rest} leads out of the address of the upstream`)
}

function upstream(address: string): GatewayRoute {
  const target = URL.canParse(address) ? new URL(address) : undefined
  if (target === undefined || !/^https?:$/.test(target.protocol) || target.username !== '' || target.password !== '')
    return refused(400, `${address} is not an address to send a request to`)
  return { kind: 'upstream', target, path: pathOf(address, target) }
}

/**
 * Path and query of an address as they were written: servers may tell `'` from `%27`, and signatures do. What leads to another
 * folder is resolved, because servers differ in how they read it.
 */
function pathOf(address: string, { pathname, search }: URL): string {
  const [, path = '', query = ''] = /^\w+:\/\/[^/?#]*([^?#]*)([^]*)$/.exec(address) ?? []
  // Node takes no other characters from a client; those of an upstream's own address are written as in a URL.
  if (/[^!-~]/.test(path + query)) return `${pathname}${search}`
  const isPlain = path.startsWith('/') && !/\\|\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)
  return `${isPlain ? path : pathname}${query}`
}

function nowhere(path: string): string {
  return `no provider is known for ${path.split('?')[0]}, so nothing was sent; a base URL is the gateway's address followed by /anthropic, /openai, /gemini, or the whole address of another provider with its http:// or https://`
}

function refused(status: number, sentence: string): GatewayRoute {
  return { kind: 'refused', status, sentence }
}
