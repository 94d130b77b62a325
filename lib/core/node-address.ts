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
  return /^(?:\[[\d.:a-f]+\]|[\w.-]+)(?::\d*)?(?:\/|$)/i.test(place) ? scheme + place : `${scheme}(an unusual address)`
}

/**
 * What tells a database from others in the address of one of its nodes: scheme, host, port and path, in one spelling. Not the
 * user name and password, which change.
 */
export function nodeOf(address: string): string {
  const shown = shownUrl(address.trim())
  let url: URL
  try {
    url = new URL(shown)
  } catch {
    return shown
  }
  const name = url.hostname.replace(/\.$/, '')
  const isHere = name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(?:\.\d+){3}$/.test(name)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const path = url.pathname
    .replace(/\/+$/, '')
    .replace(/\/_xtdb$/, '')
    .replace(/\/+$/, '')
  return `${url.protocol}//${isHere ? 'localhost' : name}:${port}${path}`
}
