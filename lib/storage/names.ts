/**
 * File names: `{tool}_{argsHash}_{timestamp}_{counter}_{random}.json`.
 *
 * A name is one path segment whatever the tool is called: only ASCII letters, digits, `_` and `-` before `.json`, neither
 * `.` nor `-` at its start, at most 124 bytes. It is never a device name of Windows, because the tool's name is followed by the
 * four other fields.
 */
import { createHash, randomInt } from 'node:crypto'
import { StorageError } from './error.ts'

const TOOL_SEGMENT_MAX = 64
/** The deepest nesting of arguments, as in the store. */
const MAX_DEPTH = 127
const RANDOM_CHARS = 4
const NAME = /^([A-Za-z0-9_][A-Za-z0-9_-]{0,63})_([a-z0-9]{6})_(\d{1,20})_(\d{1,20})_([a-z0-9]{4})\.json$/
const LARGEST = 2n ** 64n - 1n

/** A fresh file name for an output. `args` is JSON text. Throws `INVALID_ARGUMENT`. */
export function outputFileName(tool: string, args: string, timestamp: number, counter: number): string {
  let random = ''
  while (random.length < RANDOM_CHARS) random += randomInt(36).toString(36)
  const hash = sha256(canonical(JSON.parse(args), 0)).slice(0, 6)
  return `${toolSegment(tool)}_${hash}_${Math.trunc(timestamp)}_${Math.trunc(counter)}_${random}.json`
}

/** The name of an output's file until it is complete. */
export function outputTemporaryName(name: string): string {
  return `.${name}.tmp`
}

/** Those of some file names that are outputs, oldest first; with `temporary`, the leftovers instead. */
export function outputNames(names: string[], temporary: boolean): string[] {
  const keyed = names.flatMap((name) => {
    const inner = !temporary ? name : name.startsWith('.') && name.endsWith('.tmp') ? name.slice(1, -4) : ''
    const [, , , time = '', count = ''] = NAME.exec(inner) ?? []
    if (time === '' || BigInt(time) > LARGEST || BigInt(count) > LARGEST) return []
    // Leftovers have no order of their own.
    return [{ name, time: temporary ? 0n : BigInt(time), count: temporary ? 0n : BigInt(count) }]
  })
  const compare = <T>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)
  if (!temporary) keyed.sort((a, b) => compare(a.time, b.time) || compare(a.count, b.count) || compare(a.name, b.name))
  return keyed.map(({ name }) => name)
}

/** The first 12 hexadecimal digits of a query's SHA-256. */
export function outputQueryHash(query: string): string {
  return sha256(query).slice(0, 12)
}

function toolSegment(tool: string): string {
  let segment = ''
  for (const character of tool) {
    if (segment.length === TOOL_SEGMENT_MAX) break
    if (/^[A-Za-z0-9_]$/.test(character) || (character === '-' && segment !== '')) segment += character
    else if (!segment.endsWith('_')) segment += '_'
  }
  return /^_*$/.test(segment) ? 'tool' : segment
}

/** RFC 8785: JavaScript's own forms of numbers and texts, names in the order of their UTF-16 units. */
function canonical(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) {
    throw new StorageError('INVALID_ARGUMENT', `the tool's arguments are nested deeper than ${MAX_DEPTH} levels; pass flatter ones`)
  }
  if (typeof value === 'string') return JSON.stringify(wellFormed(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one, depth + 1)).join(',')}]`
  const fields = Object.entries(value).map(([name, one]): [string, unknown] => [wellFormed(name), one])
  fields.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${fields.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one, depth + 1)}`).join(',')}}`
}

/** The text with a replacement character for each half of a surrogate pair, which can't be encoded. */
export function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}
