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
  return text.slice(0, at) + edited(text, { start: at, end: text.length }, edit)
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

function edited(text: string, span: Span, edit: JsonEdit): string {
  if ('is' in edit) return JSON.stringify(edit.is)
  if ('items' in edit) return `[${edit.items.map(itemIn(text, elementsOf(text, span.start))).join(',')}]`
  const fields = fieldsOf(text, span.start)
  const last = new Map(fields.map((field) => [field.name, field]))
  const parts: string[] = []
  for (const field of fields) {
    const one = edit.fields[field.name]
    if (one === null && Object.hasOwn(edit.fields, field.name)) continue
    // JSON.parse takes the last of several fields with one name.
    if (one === undefined || one === null || !Object.hasOwn(edit.fields, field.name) || last.get(field.name) !== field)
      parts.push(text.slice(field.start, field.end))
    else parts.push(text.slice(field.start, field.value.start) + edited(text, field.value, one))
  }
  for (const [name, one] of Object.entries(edit.fields)) {
    if (one !== null && !last.has(name)) parts.push(`${JSON.stringify(name)}:${JSON.stringify(applied(undefined, one))}`)
  }
  return `{${parts.join(',')}}`
}

function itemIn(text: string, elements: readonly Span[]): (item: EditedItem) => string {
  return (item) => {
    if (typeof item === 'object' && 'add' in item) return JSON.stringify(item.add)
    const [at, edit] = typeof item === 'number' ? [item, undefined] : item
    const span = elements[at] as Span
    return edit === undefined ? text.slice(span.start, span.end) : edited(text, span, edit)
  }
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
    SCALAR.exec(text)
    return { start, end: SCALAR.lastIndex }
  }
  let depth = 0
  for (let at = start; ;) {
    STRUCTURE.lastIndex = at
    STRUCTURE.exec(text)
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
  BLANK.lastIndex = start
  BLANK.exec(text)
  return BLANK.lastIndex
}

const BLANK = /[ \t\r\n]*/y
const SCALAR = /[^\s,\]}]+/y
const STRUCTURE = /["{}[\]]/g
