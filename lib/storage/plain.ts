/**
 * The native half except for file access, in JavaScript: file names, the keyword rule and the cache, with the same
 * results. Used if the native part can't be loaded; slower, but otherwise the same. The rules are explained in
 * `crates/outputs`.
 */
import { createHash, randomInt } from 'node:crypto'
import { StorageError } from './error.ts'

const TOOL_SEGMENT_MAX = 64
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

/** Ranks the descriptions added to it by the keyword rule. */
export class RelevanceIndex {
  #keywords: Set<string>[] = []

  /** Adds a description and returns its place. */
  add(description: string): number {
    return this.#keywords.push(keywordsOf(description)) - 1
  }

  /** Positions in `places` of the matches, best first; null if nothing matches. */
  rank(query: string, places: Uint32Array): Uint32Array | null {
    const wanted = keywordsOf(query)
    return ranked(Array.from(places, (place) => shared(wanted, this.#keywords[place])))
  }

  /** Forgets all descriptions; places start at 0 again. */
  clear(): void {
    this.#keywords = []
  }
}

/** Ranks descriptions that are in no index by the keyword rule, block by block. */
export class RelevanceRanking {
  readonly #wanted: Set<string>
  readonly #scores: number[] = []

  constructor(query: string) {
    this.#wanted = keywordsOf(query)
  }

  /** Adds descriptions, joined to one text; `lengths` has the length of each. */
  add(joined: string, lengths: Uint32Array): void {
    let at = 0
    for (const length of lengths) {
      this.#scores.push(shared(this.#wanted, keywordsOf(joined.slice(at, at + length))))
      at += length
    }
  }

  /** Positions of the matches, best first, counted over all blocks; null if nothing matches. */
  order(): Uint32Array | null {
    return ranked(this.#scores)
  }
}

/** A cache of texts by name with a limit in bytes; the least recently used text leaves first. */
export class OutputCache {
  readonly #capacity: number
  readonly #threshold: number
  /** In the order of their last use. */
  readonly #texts = new Map<string, string>()
  #bytes = 0

  /** At most `capacity` bytes of texts that are shorter than `threshold` bytes. */
  constructor(capacity: number, threshold: number) {
    this.#capacity = capacity
    this.#threshold = threshold
  }

  /** Stores a text. Returns whether it fits. */
  put(name: string, text: string): boolean {
    this.remove(name)
    const size = sizeOf(name, text)
    if (Buffer.byteLength(text) >= this.#threshold || size > this.#capacity) return false
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes + size <= this.#capacity) break
      this.remove(oldest)
    }
    this.#texts.set(name, text)
    this.#bytes += size
    return true
  }

  /** The text of a name, or null. */
  get(name: string): string | null {
    const text = this.#texts.get(name)
    if (text === undefined) return null
    this.#texts.delete(name)
    this.#texts.set(name, text)
    return text
  }

  /** Drops one text. */
  remove(name: string): void {
    const text = this.#texts.get(name)
    if (text === undefined) return
    this.#texts.delete(name)
    this.#bytes -= sizeOf(name, text)
  }

  /** Drops all texts. */
  clear(): void {
    this.#texts.clear()
    this.#bytes = 0
  }

  /** Bytes of all names and texts. */
  get bytes(): number {
    return this.#bytes
  }
}

function sizeOf(name: string, text: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(text)
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

/** Half of a surrogate pair is not a character and can't be encoded. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

const WORD = /[\p{Alphabetic}\p{N}\p{M}]+/gu
const SHORT_WORD = 2

function keywordsOf(text: string): Set<string> {
  const words = fold(text).match(WORD) ?? []
  return new Set(words.filter((word) => word.length > SHORT_WORD && [...word].length > SHORT_WORD))
}

function fold(text: string): string {
  // Letter by letter, because a word's case must not depend on its neighbours; upper case first, so that letters with
  // several lower-case forms meet.
  const upper = Array.from(wellFormed(text).normalize('NFKC'), (letter) => letter.toUpperCase()).join('')
  return Array.from(upper, (letter) => letter.toLowerCase()).join('').normalize('NFKC')
}

function shared(wanted: ReadonlySet<string>, words: ReadonlySet<string> | undefined): number {
  let count = 0
  for (const word of wanted) if (words?.has(word) === true) count += 1
  return count
}

function ranked(scores: readonly number[]): Uint32Array | null {
  const matched = scores.flatMap((score, at) => (score > 0 ? [{ score, at }] : []))
  if (matched.length === 0) return null
  return Uint32Array.from(matched.sort((a, b) => b.score - a.score).map(({ at }) => at))
}
