/** The cache markers of a request in Anthropic's format, and why its API would refuse them. */

/** A marker, in the order in which the API reads a request. */
export interface WireMarker {
  path: string
  ttl: string | undefined
}

/** Returns all markers of a body: tools, system, messages, then one for the whole request. */
export function markersOf(body: any): WireMarker[] {
  const found: WireMarker[] = []
  const take = (path: string, block: any): void => {
    if (block?.cache_control !== undefined) found.push({ path, ttl: block.cache_control.ttl })
    if (Array.isArray(block?.content)) block.content.forEach((one: any, at: number) => take(`${path}.content.${at}`, one))
  }
  for (const name of ['tools', 'system', 'messages']) if (Array.isArray(body[name])) body[name].forEach((one: any, at: number) => take(`${name}.${at}`, one))
  if (body.cache_control !== undefined) found.push({ path: 'cache_control', ttl: body.cache_control.ttl })
  return found
}

/** Returns the sentence of a 400 about the markers; undefined if they are in order. `knowsTtl`: the provider is Anthropic itself. */
export function markerRefusal(body: unknown, knowsTtl = true): string | undefined {
  const markers = markersOf(body)
  if (markers.length > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${markers.length}.`
  const odd = markers.find(({ ttl }) => ttl !== undefined && (!knowsTtl || (ttl !== '5m' && ttl !== '1h')))
  if (odd !== undefined) return `${odd.path}.cache_control.ttl: Extra inputs are not permitted`
  const short = markers.findIndex(({ ttl }) => ttl !== '1h')
  const behind = markers.find(({ ttl }, at) => ttl === '1h' && short >= 0 && at > short)
  return behind === undefined
    ? undefined
    : `${behind.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`
}
