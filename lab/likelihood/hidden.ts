/**
 * Finds the names and quotes of an answer that stand in the full request and not in a policy's request: what only the
 * hidden text could have told. The rest of a change in likelihood is manner: earlier answers set the style.
 */

/** A range of an answer's text, in UTF-16 units. */
export interface Range {
  from: number
  to: number
}

/** A name: an identifier, a path or a number of at least four characters. */
const NAME = /[A-Za-z0-9_](?:[\w./:-]*[A-Za-z0-9_])?/g
const SHORTEST_NAME = 4

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
    for (const name of line[0].matchAll(NAME)) {
      const at = line.index + name.index
      if (name[0].length >= SHORTEST_NAME && isHidden(name[0])) ranges.push({ from: at, to: at + name[0].length })
    }
  }
  return ranges
}
