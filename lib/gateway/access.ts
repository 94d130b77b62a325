/**
 * Which requests come from a browser on behalf of a site. The gateway is for programs: any site can send a browser to an
 * address on loopback, and what it then shows or runs there would have the gateway's origin.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback } from './upstream.ts'

/** Values of `Sec-Fetch-Mode` that programs also send: Node's own `fetch` says `cors`. */
const MODES: ReadonlySet<string> = new Set(['cors', 'no-cors', 'same-origin'])

/**
 * Returns why a request is refused that a browser makes for a site; undefined for a program's. `port` is the gateway's own.
 * `hasToken`: the request's path must begin with a secret that no site knows. Then a program that is built like a browser
 * may come with the origin that it gives itself, such as `vscode-webview://…`.
 */
export function browserRefusal(headers: IncomingHttpHeaders, port: number, hasToken: boolean): string | undefined {
  const value = (name: string): string =>
    String(headers[name] ?? '')
      .trim()
      .toLowerCase()
  const [mode, dest, site, origin] = [value('sec-fetch-mode'), value('sec-fetch-dest'), value('sec-fetch-site'), value('origin')]
  if (isNavigation(headers)) return 'the gateway is for programs and shows nothing in a browser'
  if (value('service-worker') !== '') return 'the gateway has no service workers'
  if (mode !== '' && !MODES.has(mode)) return `the gateway is for programs, not for a request of the mode "${mode}"`
  if (dest !== '' && dest !== 'empty') return `the gateway is for programs, not for a page that loads "${dest}"`
  if (value('purpose') !== '' || value('sec-purpose') !== '') return 'the gateway is for programs: nothing is loaded in advance'
  const isApp = hasToken && isAppOrigin(origin)
  if (origin !== '' && !isApp && !isOwnOrigin(origin, port)) return 'this is not for pages of another origin'
  // A document on the gateway's own origin does not exist either: the page has its own origin.
  if (site !== '' && site !== 'none' && !isApp) return 'this is not for pages in a browser'
  return undefined
}

/** True if a browser asks for a document to show it; also one that sends no `Sec-Fetch-…`. */
export function isNavigation(headers: IncomingHttpHeaders): boolean {
  const mode = String(headers['sec-fetch-mode'] ?? '')
    .trim()
    .toLowerCase()
  return /\bnavigate\b/.test(mode) || headers['upgrade-insecure-requests'] !== undefined || headers['sec-fetch-user'] !== undefined
}

/** True if an answer to a request is for a person: a text that a browser shows. */
export function wantsHtml(headers: IncomingHttpHeaders): boolean {
  return isNavigation(headers) || /^\s*text\/html\b/i.test(headers.accept ?? '')
}

/** True if a `GET` is for the gateway itself and not for an upstream: its bare address, without credentials. */
export function isFrontDoor(url: string, headers: IncomingHttpHeaders): boolean {
  return url === '/' && ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'anthropic-version'].every((name) => headers[name] === undefined)
}

/** True if a client asks for a WebSocket, alone or beside other protocols. */
export function isWebSocket(headers: IncomingHttpHeaders): boolean {
  return /(?:^|,)\s*websocket\b/i.test(headers.upgrade ?? '')
}

/** The name in a `Host` header. */
export function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}

/** True if an origin belongs to a program and not to a site: its scheme is the program's. A page without an origin says `null`. */
function isAppOrigin(origin: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^\s,]*$/.test(origin) && !/^(?:https?|file|ftp|wss?|data|blob):/.test(origin)
}

function isOwnOrigin(origin: string, port: number): boolean {
  const host = /^http:\/\/([^/\s,]+)$/.exec(origin)?.[1]
  return host !== undefined && isLoopback(nameOf(host)) && host.endsWith(`:${port}`)
}
