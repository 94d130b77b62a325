/**
 * The parts of a text that can be recognized in another: quotes (runs of 30 characters or more, not counting white
 * space) and names (identifiers, file names and hashes that are never written by chance), each reported as a 64-bit hash.
 */

/** Takes what is found. A quote and a name never have the same hash. */
export interface Sink {
  quote(high: number, low: number): void
  name(high: number, low: number): void
}

/** A quote is the shortest run of words, starting at a given word, that has this many characters. */
const QUOTE_CHARS = 30

/** A run that begins with a longer word is not a quote: it is data, which a model does not retype. */
const MAX_FIRST_WORD = 200

/** Identifiers of at least this length are names if they contain an underscore or a capital after a small letter. */
const NAME_CHARS = 8

/** Hexadecimal words of these lengths, with digits and letters, are hashes. */
const MIN_HASH_CHARS = 7
const MAX_HASH_CHARS = 40

/** The endings that make a word with a dot a file name. */
const ENDINGS = new Set(
  ('go mod sum ts tsx js mjs cjs jsx json jsonl md rs py sh yaml yml toml css html txt sql swift lock log plist rb c h ' + 'cpp java kt').split(' '),
)
const MAX_ENDING = 5

const QUOTE_SEED = 0x811c9dc5
const NAME_SEED = 0x1b873593

// Kinds of characters.
const OTHER = 0
const SPACE = 1
const DIGIT = 2
const LOWER = 4
const UPPER = 8
const UNDERSCORE = 16
const LETTER = LOWER | UPPER
const WORD = DIGIT | LETTER | UNDERSCORE

const ASCII = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code)
  if (/\s/.test(char)) return SPACE
  if (/[0-9]/.test(char)) return DIGIT
  if (/[a-z]/.test(char)) return LOWER
  if (/[A-Z]/.test(char)) return UPPER
  return char === '_' ? UNDERSCORE : OTHER
})

/** Finds quotes and names. One instance may look through many texts, one after the other. */
export class Scanner {
  /** For each word of the text: two hashes, its characters, and whether it has three letters in a row. */
  #first = new Int32Array(1 << 12)
  #second = new Int32Array(1 << 12)
  #chars = new Int32Array(1 << 12)
  #letters = new Uint8Array(1 << 12)
  #words = 0

  /**
   * Searches a text as the model reads it. Paths are taken relative to the working directory, which every system prompt
   * names, and line numbers are ignored.
   */
  scan(text: string, cwd: string, sink: Sink): void {
    const short = below(text, cwd)
    this.#words = 0
    this.#split(short, sink)
    this.#quotes(sink)
    fileNames(short, sink)
  }

  #split(text: string, sink: Sink): void {
    let at = afterLineNumber(text, 0)
    while (at < text.length) {
      const kind = kindAt(text, at)
      if (kind === SPACE) {
        at += 1
        if (endsLine(text.charCodeAt(at - 1))) at = afterLineNumber(text, at)
      } else if ((kind & WORD) === 0) {
        this.#add(text, at, at + 1, false)
        at += 1
      } else {
        at = this.#word(text, at, sink)
      }
    }
  }

  /** Reads the word that begins here; returns its end. */
  #word(text: string, start: number, sink: Sink): number {
    let end = start
    let row = 0
    let letters = false
    let name = -1
    let named = false
    let before = OTHER
    let hex = true
    let digits = false
    let hexLetters = false
    for (let kind = kindAt(text, end); (kind & WORD) !== 0; kind = end < text.length ? kindAt(text, end) : OTHER) {
      row = (kind & LETTER) !== 0 ? row + 1 : 0
      if (row === 3) letters = true
      if (name < 0 && kind !== DIGIT) name = end
      else if (name >= 0 && kind === UPPER && (before & (LOWER | DIGIT)) !== 0) named = true
      else if (kind !== UNDERSCORE && before === UNDERSCORE && end - 2 >= name && name >= 0) {
        named ||= kindAt(text, end - 2) !== UNDERSCORE
      }
      if (kind === DIGIT) digits = true
      else if (kind === LOWER && text.charCodeAt(end) <= 0x66) hexLetters = true
      else hex = false
      before = kind
      end += 1
    }
    this.#add(text, start, end, letters)
    if (named && end - name >= NAME_CHARS) tellName(text, name, end, sink)
    const length = end - start
    if (hex && digits && hexLetters && length >= MIN_HASH_CHARS && length <= MAX_HASH_CHARS) {
      tellName(text, start, end, sink)
    }
    return end
  }

  #add(text: string, start: number, end: number, letters: boolean): void {
    const place = this.#words
    if (place === this.#first.length) this.#grow()
    let a = QUOTE_SEED
    let b = end - start
    for (let at = start; at < end; at += 1) {
      const code = text.charCodeAt(at)
      a = Math.imul(a ^ code, 0x01000193)
      b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13)
    }
    this.#first[place] = a
    this.#second[place] = b
    this.#chars[place] = end - start
    this.#letters[place] = letters ? 1 : 0
    this.#words += 1
  }

  #grow(): void {
    const wider = <T extends Int32Array | Uint8Array>(old: T, made: T): T => {
      made.set(old)
      return made
    }
    const size = 2 * this.#first.length
    this.#first = wider(this.#first, new Int32Array(size))
    this.#second = wider(this.#second, new Int32Array(size))
    this.#chars = wider(this.#chars, new Int32Array(size))
    this.#letters = wider(this.#letters, new Uint8Array(size))
  }

  #quotes(sink: Sink): void {
    const chars = this.#chars
    const letters = this.#letters
    let end = 0
    let length = 0
    for (let start = 0; start < this.#words; start += 1) {
      while (end < this.#words && length < QUOTE_CHARS) {
        length += chars[end] as number
        end += 1
      }
      if (length < QUOTE_CHARS) return
      if (letters[start] === 1 && (chars[start] as number) <= MAX_FIRST_WORD) this.#quote(start, end, sink)
      length -= chars[start] as number
    }
  }

  /** A quote needs two words of letters: rules, brackets and tables of numbers are no evidence. */
  #quote(start: number, end: number, sink: Sink): void {
    let words = 0
    let a = QUOTE_SEED
    let b = QUOTE_SEED
    for (let at = start; at < end; at += 1) {
      words += this.#letters[at] as number
      a = Math.imul(a ^ (this.#first[at] as number), 0x9e3779b1)
      a ^= a >>> 15
      b = Math.imul(b ^ (this.#second[at] as number), 0x85ebca6b)
      b ^= b >>> 13
    }
    if (words >= 2) sink.quote(a >>> 0, b >>> 0)
  }
}

/** All texts in a value, such as the arguments of a call. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

function below(text: string, cwd: string): string {
  return cwd.length > 1 ? text.replaceAll(`${cwd}/`, '').replaceAll(cwd, '.') : text
}

/** The index at which a line begins after its number, if it has one: `  12→` or `  12` and a tab. */
function afterLineNumber(text: string, start: number): number {
  let at = start
  while (text.charCodeAt(at) === 0x20) at += 1
  const first = at
  while (at < text.length && kindAt(text, at) === DIGIT) at += 1
  if (at === first) return start
  const code = text.charCodeAt(at)
  return code === 0x2192 || code === 0x09 ? at + 1 : start
}

function endsLine(code: number): boolean {
  return code === 0x0a || code === 0x0d || code === 0x2028 || code === 0x2029
}

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code < 128) return ASCII[code] as number
  return isWideSpace(code) ? SPACE : OTHER
}

function isWideSpace(code: number): boolean {
  if (code === 0xa0 || code === 0xfeff) return true
  if (code < 0x1680 || code > 0x3000) return false
  return /\s/.test(String.fromCharCode(code))
}

function fileNames(text: string, sink: Sink): void {
  let from = 0
  for (let dot = text.indexOf('.'); dot >= 0;) {
    let start = dot
    while (start > from && isFileChar(text, start - 1)) start -= 1
    let at = dot
    let end = -1
    while (start < dot && text.charCodeAt(at) === 0x2e) {
      let word = at + 1
      while (word < text.length && (kindAt(text, word) & WORD) !== 0) word += 1
      if (word - at - 1 <= MAX_ENDING && ENDINGS.has(text.slice(at + 1, word))) end = word
      let next = word
      while (next < text.length && isFileChar(text, next)) next += 1
      if (next === at + 1) break
      at = next
    }
    if (end >= 0) {
      tellName(text, start, end, sink)
      from = end
    }
    dot = text.indexOf('.', Math.max(at, dot + 1))
  }
}

function isFileChar(text: string, at: number): boolean {
  return (kindAt(text, at) & WORD) !== 0 || text.charCodeAt(at) === 0x2d
}

function tellName(text: string, start: number, end: number, sink: Sink): void {
  let a = NAME_SEED
  let b = end - start
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at)
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13)
  }
  a = Math.imul(a ^ (a >>> 16), 0x9e3779b1)
  sink.name(a >>> 0, b >>> 0)
}
