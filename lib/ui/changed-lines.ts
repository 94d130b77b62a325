/** The lines that came and went between two texts, for people. */

/** Lines shown around a change. */
const CONTEXT = 2

/**
 * If the product of the line counts is larger than this, the middle is shown as replaced, because the table would get
 * too large.
 */
const MAX_CELLS = 4_000_000

/** A longer line is shown without its end, in UTF-16 units. */
const MAX_LINE = 400

/** All lines of one difference together, in UTF-16 units. */
const MAX_SHOWN = 40_000

/**
 * The lines of a difference, or of a text of which each line was added, within a limit: long lines without their ends, and after
 * too many of them one that counts the rest. Lines that begin with `+` or `-` are those that came or went.
 */
export function bounded(lines: Iterable<string>): string[] {
  const kept: string[] = []
  let left = MAX_SHOWN
  let [added, removed] = [0, 0]
  for (const line of lines) {
    if (left >= 0) {
      const short = withoutEnd(line)
      left -= short.length + 1
      if (left >= 0) {
        kept.push(short)
        continue
      }
    }
    if (line.startsWith('+')) added += 1
    else if (line.startsWith('-')) removed += 1
  }
  const count = added + removed
  return left >= 0 ? kept : [...kept, `… ${count} more ${count === 1 ? 'line' : 'lines'} changed, +${added} -${removed}`]
}

/** A difference as lines with `+`, `-` or a space before them, and `…` for what is left out; none for equal texts. */
export function* changedLines(before: string, after: string): Generator<string> {
  if (before === after) return
  const old = before.split('\n')
  const now = after.split('\n')
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1
  const [wasTo, isTo] = [old.length - tail, now.length - tail]
  if (head > CONTEXT) yield '…'
  for (let at = Math.max(0, head - CONTEXT); at < head; at += 1) yield ` ${old[at]}`
  if ((wasTo - head) * (isTo - head) > MAX_CELLS) {
    yield `… too many lines to compare: ${wasTo - head} count as replaced by ${isTo - head}`
    for (let at = head; at < wasTo; at += 1) yield `-${old[at]}`
    for (let at = head; at < isTo; at += 1) yield `+${now[at]}`
  } else yield* shortened(changes(old.slice(head, wasTo), now.slice(head, isTo)))
  for (let at = wasTo; at < Math.min(old.length, wasTo + CONTEXT); at += 1) yield ` ${old[at]}`
  if (tail > CONTEXT) yield '…'
}

function withoutEnd(line: string): string {
  if (line.length <= MAX_LINE) return line
  // Half of a pair is not a character.
  const end = /[\uD800-\uDBFF]/.test(line[MAX_LINE - 1] as string) ? MAX_LINE - 1 : MAX_LINE
  return `${line.slice(0, end)}… ${line.length - end} more characters`
}

function changes(old: readonly string[], now: readonly string[]): string[] {
  const width = now.length + 1
  // The length of the longest common part of what is left from each pair of places on.
  const common = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const below = common[(i + 1) * width + j] as number
      const right = common[i * width + j + 1] as number
      common[i * width + j] = old[i] === now[j] ? (common[(i + 1) * width + j + 1] as number) + 1 : Math.max(below, right)
    }
  }
  const lines: string[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(` ${old[i]}`)
      i += 1
      j += 1
    } else if (j >= now.length || (i < old.length && (common[(i + 1) * width + j] as number) >= (common[i * width + j + 1] as number))) {
      lines.push(`-${old[i]}`)
      i += 1
    } else {
      lines.push(`+${now[j]}`)
      j += 1
    }
  }
  return lines
}

/** Leaves out the lines that are far from a change. The first and the last one are changed. */
function* shortened(lines: readonly string[]): Generator<string> {
  let from = 0
  while (from < lines.length) {
    let to = from
    while (lines[to]?.startsWith(' ') === true) to += 1
    // These lines are the same, up to the next change.
    if (to - from <= 2 * CONTEXT) yield* lines.slice(from, to)
    else yield* [...lines.slice(from, from + CONTEXT), '…', ...lines.slice(to - CONTEXT, to)]
    if (to < lines.length) yield lines[to] as string
    from = to + 1
  }
}
