/** The addresses of XTDB nodes as people write them: taken apart, compared, and shown without what is secret in them. */

/** The addresses in a text, divided by blanks or commas. A comma within an address, as in a password, divides nothing. */
export function addressesIn(text: string): string[] {
  return text
    .split(/[\s,]+(?=https?:\/\/)/i)
    .map((part) => part.replace(/^[\s,]+|[\s,]+$/g, ''))
    .filter((part) => part !== '')
}

/**
 * True if a text is meant as an address, in any notation, and not as the path of a file. So is one without a scheme that names a
 * user or a password before its host.
 */
export function isAddress(text: string): boolean {
  return /^\s*(?:https?:|[a-z][a-z0-9+.-]+:\/\/)/i.test(text) || SIGNED_IN.test(text)
}

/** `user:password@host`, with a port or not, or `token@host:port`. The name of a drive on Windows is not a user. */
const SIGNED_IN = /^\s*(?:\/\/)?(?![a-z]:[\\/])(?:[^/\\@]*:.*@[\w.[\]:-]+(?:[/?#].*)?|[^/\\@:]+@[\w.-]+:\d+(?:[/?#].*)?)\s*$/is

/**
 * An address for people: without user name, password and parameters. Where it can't be told what is secret, only the scheme
 * is left.
 */
export function shownUrl(url: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0]
  if (scheme === undefined) return '(an address that is not http://host:port)'
  const rest = url.slice(scheme.length)
  // Up to the last sign: a password may have signs, slashes and question marks that should have been escaped.
  const place = rest.slice(rest.lastIndexOf('@') + 1).replace(/[?#].*$/s, '')
  return /^(?:\[[\d.:a-f]+\]|[\p{L}\p{N}_.-]+)(?::\d*)?(?:\/|$)/iu.test(place) ? scheme + place : `${scheme}(an unusual address)`
}

/**
 * What tells a database from others in the address of one of its nodes: scheme, host, port and path, in one spelling. Not the
 * user name and password, which change.
 */
export function nodeOf(address: string): string {
  const url = urlOf(address)
  return url === undefined ? shownUrl(address.trim()) : joined(url, pathOf(url), plainHost(hostOf(url)))
}

/** The same in the spelling of earlier versions, which named journals after it. */
export function earlierNodeOf(address: string): string {
  const url = urlOf(address)
  return url === undefined ? shownUrl(address.trim()) : joined(url, rawPathOf(url), hostOf(url))
}

function urlOf(address: string): URL | undefined {
  try {
    return new URL(shownUrl(address.trim()))
  } catch {
    return undefined
  }
}

function joined(url: URL, path: string, name: string): string {
  const isHere = name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(?:\.\d+){3}$/.test(name)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return `${url.protocol}//${isHere ? 'localhost' : name}:${port}${path}`
}

/** The host as `URL` spells it: small letters, Punycode, numbers of an address in their usual form. */
function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

/** The host in the form that it has most often: an address of version 4 as such, and `localhost` for the one that means any. */
function plainHost(name: string): string {
  const [, high, low] = /^\[::ffff:([\da-f]+):([\da-f]+)\]$/.exec(name) ?? []
  const numbers = [high, low].map((half) => Number.parseInt(half ?? '', 16))
  const plain = high === undefined ? name : numbers.flatMap((half) => [half >> 8, half & 255]).join('.')
  return plain === '0.0.0.0' || plain === '[::]' ? 'localhost' : plain
}

function rawPathOf(url: URL): string {
  return url.pathname
    .replace(/\/+$/, '')
    .replace(/\/_xtdb$/, '')
    .replace(/\/+$/, '')
}

/** The path without needless escapes, the others in capitals (RFC 3986, section 6.2.2). */
function pathOf(url: URL): string {
  return rawPathOf(url).replace(/%[\da-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escape.toUpperCase()
  })
}
