/**
 * Writes an edit into the text of a JSON body. Text outside the edit keeps its characters: numbers that no JavaScript
 * number holds, names that come twice, escapes and spaces.
 */
import { applied, editOf } from './edit.ts'
import type { JsonEdit, EditedItem } from './edit.ts'

/** A part of the text: from its first character to the one behind its last. */
interface Span {
  start: number
  end: number
}

/** A field: from its name to the end of its value. */
interface Field extends Span {
  name: string
  value: Span
}

/** The text of a JSON value with an edit. The text must be one that `JSON.parse` takes, and the edit one of its value. */
export function spliced(text: string, edit: JsonEdit): string {
  const at = blankEnd(text, 0)
  const parts = [text.slice(0, at)]
  write(parts, text, { start: at, end: text.length }, edit)
  // Joined once: the text of a body is long, and each copy of it is garbage.
  return parts.join('')
}

/** The text of changed arguments. Unchanged parts keep their characters. */
export function argumentsText(own: unknown, args: object): string {
  try {
    const text = own as string
    const edit = editOf(JSON.parse(text), args)
    return edit === undefined ? text : spliced(text, edit)
  } catch {
    // A model may have written no JSON.
    return JSON.stringify(args)
  }
}

/** The place of a list in a text. */
export interface ListPlace {
  /** The index behind its first bracket. */
  start: number
  /** The index of its last one. */
  end: number
  elements: readonly Span[]
}

/**
 * Finds the list that an object has in a field. The text must be one that `JSON.parse` takes. Undefined if no field, or more than one,
 * has this name, or if it is not a list.
 */
export function listIn(text: string, name: string): ListPlace | undefined {
  const at = blankEnd(text, 0)
  const named = text[at] === '{' ? fieldsOf(text, at).filter((field) => field.name === name) : []
  const { value } = named[0] ?? {}
  if (value === undefined || named.length > 1 || text[value.start] !== '[') return undefined
  return { start: value.start + 1, end: value.end - 1, elements: elementsOf(text, value.start) }
}

/** Adds the parts of a value with an edit. */
function write(parts: string[], text: string, span: Span, edit: JsonEdit): void {
  if ('is' in edit) parts.push(JSON.stringify(edit.is))
  else if ('items' in edit) writeItems(parts, text, span, edit.items)
  else writeFields(parts, text, span, edit.fields)
}

function writeItems(parts: string[], text: string, { start }: Span, items: readonly EditedItem[]): void {
  const elements = elementsOf(text, start)
  let before = '['
  for (const item of items) {
    parts.push(before)
    before = ','
    if (typeof item === 'object' && 'add' in item) {
      parts.push(JSON.stringify(item.add))
      continue
    }
    const [at, edit] = typeof item === 'number' ? [item, undefined] : item
    const span = elements[at] as Span
    if (edit === undefined) parts.push(text.slice(span.start, span.end))
    else write(parts, text, span, edit)
  }
  parts.push(items.length === 0 ? '[]' : ']')
}

function writeFields(parts: string[], text: string, { start }: Span, edits: Record<string, JsonEdit | null>): void {
  const fields = fieldsOf(text, start)
  const last = new Map(fields.map((field) => [field.name, field]))
  let before = '{'
  const begin = (name: string): void => {
    parts.push(before, name)
    before = ','
  }
  for (const field of fields) {
    const one = Object.hasOwn(edits, field.name) ? edits[field.name] : undefined
    if (one === null) continue
    // JSON.parse takes the last of several fields with one name.
    if (one === undefined || last.get(field.name) !== field) begin(text.slice(field.start, field.end))
    else {
      begin(text.slice(field.start, field.value.start))
      write(parts, text, field.value, one)
    }
  }
  for (const [name, one] of Object.entries(edits)) {
    if (one !== null && !last.has(name)) begin(`${JSON.stringify(name)}:${JSON.stringify(applied(undefined, one))}`)
  }
  parts.push(before === '{' ? '{}' : '}')
}

/** The fields of the object that begins here. */
function fieldsOf(text: string, start: number): Field[] {
  const fields: Field[] = []
  let at = blankEnd(text, start + 1)
  while (text[at] !== '}') {
    const nameEnd = stringEnd(text, at)
    const value = valueAt(text, blankEnd(text, blankEnd(text, nameEnd) + 1))
    fields.push({ start: at, end: value.end, name: JSON.parse(text.slice(at, nameEnd)) as string, value })
    at = next(text, value.end)
  }
  return fields
}

/** The elements of the list that begins here. */
function elementsOf(text: string, start: number): Span[] {
  const elements: Span[] = []
  let at = blankEnd(text, start + 1)
  while (text[at] !== ']') {
    const element = valueAt(text, at)
    elements.push(element)
    at = next(text, element.end)
  }
  return elements
}

/** The index at which the next element or field begins, or the end of all. */
function next(text: string, end: number): number {
  const at = blankEnd(text, end)
  return text[at] === ',' ? blankEnd(text, at + 1) : at
}

function valueAt(text: string, start: number): Span {
  const first = text[start]
  if (first === '"') return { start, end: stringEnd(text, start) }
  if (first !== '{' && first !== '[') {
    SCALAR.lastIndex = start
    SCALAR.test(text)
    return { start, end: SCALAR.lastIndex }
  }
  let depth = 0
  for (let at = start; ;) {
    STRUCTURE.lastIndex = at
    STRUCTURE.test(text)
    const place = STRUCTURE.lastIndex - 1
    const character = text[place]
    if (character === '"') {
      at = stringEnd(text, place)
      continue
    }
    depth += character === '{' || character === '[' ? 1 : -1
    at = place + 1
    if (depth === 0) return { start, end: at }
  }
}

/** The end of the string that begins here: after its closing quote. */
function stringEnd(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text[at - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return at + 1
  }
}

function blankEnd(text: string, start: number): number {
  if (text.charCodeAt(start) > SPACE) return start
  BLANK.lastIndex = start
  BLANK.test(text)
  return BLANK.lastIndex
}

const SPACE = 0x20

// Only where they end is asked of these: an array of what they found would be garbage, thousands of times in a body.
const BLANK = /[ \t\r\n]*/y
const SCALAR = /[^\s,\]}]+/y
const STRUCTURE = /["{}[\]]/g
