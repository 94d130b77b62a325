/** "Did you mean ...?" */

/** The name that a misspelled word most likely means; undefined if none is near. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  let best: string | undefined
  // A third of the letters may be wrong, and at least one.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const name of names) {
    const steps = name.startsWith(word) && word.length > 1 ? 0 : distance(word, name)
    if (steps < least) [best, least] = [name, steps]
  }
  return best
}

/** `; did you mean "NAME"?`, or nothing. */
export function suggestion(word: string, names: Iterable<string>): string {
  const name = nearest(word, names)
  return name === undefined ? '' : `; did you mean "${name}"?`
}

/** The number of letters to add, remove, replace or swap with their neighbour (optimal string alignment). */
function distance(from: string, to: string): number {
  let older: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1
      let steps = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + same)
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) steps = Math.min(steps, (older[j - 2] as number) + 1)
      row.push(steps)
    }
    older = last
    last = row
  }
  return last[to.length] as number
}
