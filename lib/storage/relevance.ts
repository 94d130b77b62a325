/**
 * The keyword rule: which descriptions share words with a query.
 *
 * A word is a run of letters, marks and digits of any script, compared after compatibility normalisation (NFKC) and
 * without regard to case. A keyword is a word of more than two characters. The score of a description is the number of
 * distinct keywords that it shares with the query.
 */
import { wellFormed } from './names.ts'

const WORD = /[\p{Alphabetic}\p{N}\p{M}]+/gu
/** Words of up to this many characters are no keywords. */
const SHORT_WORD = 2
const ASCII = /^[\0-\x7f]*$/

/** Finds descriptions by keyword. A look-up costs what matches, not what is stored. */
export class RelevanceIndex {
  /** The places of the descriptions that have a keyword, in ascending order. */
  readonly #places = new Map<string, number[]>()
  #count = 0

  /** Adds a description and returns its place: the number of descriptions added before it. */
  add(description: string): number {
    for (const keyword of keywordsOf(description)) {
      const places = this.#places.get(keyword)
      if (places === undefined) this.#places.set(keyword, [this.#count])
      else places.push(this.#count)
    }
    return this.#count++
  }

  /** Returns positions in `places` of the matches, the highest score first; null if nothing matches. */
  rank(query: string, places: Uint32Array): Uint32Array | null {
    const scores = new Uint32Array(this.#count)
    for (const keyword of keywordsOf(query)) {
      for (const place of this.#places.get(keyword) ?? []) scores[place]! += 1
    }
    return ranked(places.map((place) => scores[place] ?? 0))
  }

  /** Forgets all descriptions; places start at 0 again. */
  clear(): void {
    this.#places.clear()
    this.#count = 0
  }
}

/** Ranks descriptions that are in no index: positions of the matches, the highest score first; null if nothing matches. */
export function rank(query: string, descriptions: readonly string[]): Uint32Array | null {
  const wanted = keywordsOf(query)
  return ranked(Uint32Array.from(descriptions, (description) => shared(wanted, keywordsOf(description))))
}

function shared(wanted: ReadonlySet<string>, words: ReadonlySet<string>): number {
  let count = 0
  for (const word of wanted) if (words.has(word)) count += 1
  return count
}

function keywordsOf(text: string): Set<string> {
  const words = fold(text).match(WORD) ?? []
  return new Set(words.filter((word) => word.length > SHORT_WORD && [...word].length > SHORT_WORD))
}

function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  // Letter by letter, because a word's case must not depend on its neighbours; upper case first, so that letters with
  // several lower-case forms meet.
  const upper = Array.from(wellFormed(text).normalize('NFKC'), (letter) => letter.toUpperCase()).join('')
  return Array.from(upper, (letter) => letter.toLowerCase())
    .join('')
    .normalize('NFKC')
}

/** Positions of the scores above 0, the highest first, equal ones in their order. */
function ranked(scores: Uint32Array): Uint32Array | null {
  const highest = scores.reduce((most, score) => Math.max(most, score), 0)
  if (highest === 0) return null
  const byScore = Array.from({ length: highest + 1 }, (): number[] => [])
  scores.forEach((score, at) => byScore[score]!.push(at))
  return Uint32Array.from(byScore.slice(1).toReversed().flat())
}
