/** Base URLs, as variables, options and settings files name them. One that is none is refused before anything is sent. */
import { UsageError } from '../ui/index.ts'

/**
 * The base URL that `name` has; undefined if it has none. Throws a {@link UsageError} for a value that no request can be sent to: as a
 * path of the gateway's, it would lead to another provider, with the key of this one.
 */
export function baseUrlIn(name: string, value: string | undefined): string | undefined {
  if (value === undefined || value === '' || isBaseUrl(value)) return value === '' ? undefined : value
  const mended = mendedUrl(value.trim())
  throw new UsageError(
    mended === undefined
      ? `${name} needs an address such as http://localhost:8080, not "${value}"`
      : `${name} is "${value}", and an address begins with http:// or https://; write ${mended}`,
  )
}

function isBaseUrl(value: string): boolean {
  return /^https?:\/\/[^/?#\s]/i.test(value) && URL.canParse(value)
}

/** The address that is meant; undefined if that is not clear. */
function mendedUrl(value: string): string | undefined {
  if (isBaseUrl(value)) return value
  const rest = value.replace(/^https?:\/*/i, '')
  if (/^\w[\w+.-]*:\/\//.test(rest) || /^[^\w[]/.test(rest) || /\s/.test(rest)) return undefined
  const host = rest.split(/[/?#]/)[0] as string
  // Names of the local network have no certificate, and other names have no port.
  const scheme = host.includes(':') || !/\.[a-z]/i.test(host) ? 'http' : 'https'
  const mended = `${/^https:/i.test(value) ? 'https' : scheme}://${rest}`
  return isBaseUrl(mended) ? mended : undefined
}
