/**
 * Circles in a graph of imports.
 *
 * @typedef {{ line: number, what: string }} Import Where a file imports something of another one, and what.
 * @typedef {Map<string, Map<string, Import>>} Imports Each file with the files that it imports from.
 * @typedef {Import & { from: string, to: string }} Step One import of a circle.
 */

/**
 * For each file that is in a circle the shortest one through it, each circle once, shorter ones first.
 *
 * @param {Imports} imports
 * @returns {Step[][]}
 */
export function circlesOf(imports) {
  const circles = new Map()
  for (const file of [...imports.keys()].sort()) {
    const circle = shortest(imports, file)
    if (circle === undefined) continue
    const key = circle
      .map((step) => step.from)
      .sort()
      .join('\n')
    if (!circles.has(key)) circles.set(key, circle)
  }
  return [...circles.values()].sort((one, other) => one.length - other.length)
}

/** The shortest way from a file back to itself; undefined where there is none. */
function shortest(imports, start) {
  const cameBy = new Map()
  let reached = [start]
  while (reached.length > 0) {
    const next = []
    for (const from of reached) {
      for (const [to, { line, what }] of imports.get(from) ?? []) {
        if (cameBy.has(to)) continue
        cameBy.set(to, { from, to, line, what })
        if (to === start) return walk(cameBy, start)
        next.push(to)
      }
    }
    reached = next
  }
  return undefined
}

function walk(cameBy, start) {
  const steps = []
  let place = start
  do {
    const step = cameBy.get(place)
    steps.unshift(step)
    place = step.from
  } while (place !== start)
  return steps
}
