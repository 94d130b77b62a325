/** Writes an edit into a body. What stays is copied from its bytes, and only what changes is text. */
import { isEdited, listIn, spliced } from '../projection/index.ts'
import type { EditedItem, JsonEdit, ListPlace } from '../projection/index.ts'
import type { ParsedBody } from './bodies.ts'
import { textOf } from './body.ts'

/** The bytes of a body with edits of its fields: those that {@link spliced} makes of its text. */
export function splicedBody(body: ParsedBody, fields: Record<string, JsonEdit | null>): Buffer {
  const { bytes, name, place } = body
  const edit = fields[name]
  if (place === undefined || edit === undefined || edit === null || !('items' in edit)) return Buffer.from(spliced(textOf(bytes), { fields }))
  // Everything but the elements, with its own edits.
  const rest = textOf(Buffer.concat([bytes.subarray(0, place.start), bytes.subarray(place.end)]))
  const { [name]: _list, ...others } = fields
  const around = spliced(rest, { fields: others })
  const start = listIn(around, name)?.start
  if (start === undefined) return Buffer.from(spliced(textOf(bytes), { fields }))
  return Buffer.concat([Buffer.from(around.slice(0, start)), ...elements(bytes, place, edit.items), Buffer.from(around.slice(start))])
}

/** The parts of the list, without its brackets. Elements that follow each other are one part. */
function elements(bytes: Buffer, place: ListPlace, items: readonly EditedItem[]): Buffer[] {
  const parts: Buffer[] = []
  let [from, to] = [0, 0]
  const flush = (): void => {
    if (to > from) parts.push(bytes.subarray(from, to))
    from = to = 0
  }
  for (const [n, item] of items.entries()) {
    const own = typeof item === 'number' ? place.elements[item] : undefined
    // Between them is a comma, and nothing else.
    if (own !== undefined && to > from && own.start === to + 1) {
      to = own.end
      continue
    }
    flush()
    if (n > 0) parts.push(COMMA)
    if (own !== undefined) [from, to] = [own.start, own.end]
    else parts.push(Buffer.from(changed(bytes, place, item)))
  }
  flush()
  return parts
}

/** The text of an element that is added or changed. */
function changed(bytes: Buffer, { elements: all }: ListPlace, item: EditedItem): string {
  if (typeof item === 'number' || !isEdited(item)) return JSON.stringify((item as { add: unknown }).add)
  const [at, edit] = item
  const { start, end } = all[at] as { start: number; end: number }
  return spliced(textOf(bytes.subarray(start, end)), edit)
}

const COMMA = Buffer.from(',')
