/**
 * Finds the names and quotes of an answer that stand in the full request and not in a policy's request: what only the
 * hidden text could have told. The rest of a change in likelihood is manner: earlier answers set the style.
 */

/** A range of an answer's text, in UTF-16 units. */
export interface Range {
  from: number
  to: number
}

/** A word. In a call's JSON, a letter behind a backslash is not part of it. */
const WORD = /(?<=\\[a-z]|^|[^\w./:\\-])[\w./:-]*\w/g

/** A word of at least this many characters is a name if it is an identifier, a path or a number: with one of these inside, or with a capital behind a small letter. */
const SHORTEST_NAME = 4
const IS_NAME = /[\d_./:]|[a-z][A-Z]/

/** The shortest line that counts as a quote, in UTF-16 units without the white space at its ends. */
const SHORTEST_QUOTE = 20

/** Returns the ranges of `answer` that occur in `full` and do not occur in `sent`, in order and without overlaps. */
export function onlyHidden(answer: string, full: string, sent: string): Range[] {
  if (full === sent) return []
  const isHidden = (text: string): boolean => full.includes(text) && !sent.includes(text)
  const ranges: Range[] = []
  for (const line of answer.matchAll(/[^\n]+/g)) {
    const quote = line[0].trim()
    const from = line.index + line[0].indexOf(quote)
    if (quote.length >= SHORTEST_QUOTE && isHidden(quote)) {
      ranges.push({ from, to: from + quote.length })
      continue
    }
    for (const { 0: word, index } of line[0].matchAll(WORD)) {
      const at = line.index + index
      if (word.length >= SHORTEST_NAME && IS_NAME.test(word) && isHidden(word)) ranges.push({ from: at, to: at + word.length })
    }
  }
  return ranges
}
