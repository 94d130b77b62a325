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
export function bounded(lines: readonly string[]): string[] {
  const kept: string[] = []
  let left = MAX_SHOWN
  for (const [at, line] of lines.entries()) {
    const short = withoutEnd(line)
    left -= short.length + 1
    if (left < 0) return [...kept, rest(lines.slice(at))]
    kept.push(short)
  }
  return kept
}

function withoutEnd(line: string): string {
  if (line.length <= MAX_LINE) return line
  // Half of a pair is not a character.
  const end = /[\uD800-\uDBFF]/.test(line[MAX_LINE - 1] as string) ? MAX_LINE - 1 : MAX_LINE
  return `${line.slice(0, end)}… ${line.length - end} more characters`
}

function rest(lines: readonly string[]): string {
  const count = (mark: string): number => lines.filter((line) => line.startsWith(mark)).length
  const [added, removed] = [count('+'), count('-')]
  return `… ${added + removed} more ${added + removed === 1 ? 'line' : 'lines'} changed, +${added} -${removed}`
}

/** A difference as lines with `+`, `-` or a space before them, and `…` for what is left out; empty for equal texts. */
export function changedLines(before: string, after: string): string {
  if (before === after) return ''
  const old = before.split('\n')
  const now = after.split('\n')
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1
  const middle = changes(old.slice(head, old.length - tail), now.slice(head, now.length - tail))
  const same = (lines: readonly string[]): string[] => lines.map((line) => ` ${line}`)
  const all = [...same(old.slice(0, head)), ...middle, ...same(old.slice(old.length - tail))]
  return shortened(all).join('\n')
}

function changes(old: readonly string[], now: readonly string[]): string[] {
  if (old.length * now.length > MAX_CELLS) return [...old.map((line) => `-${line}`), ...now.map((line) => `+${line}`)]
  const width = now.length + 1
  // The length of the longest common part of what is left from each pair of places on.
  const common = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const below = common[(i + 1) * width + j] as number
      const right = common[i * width + j + 1] as number
      common[i * width + j] =
        old[i] === now[j] ? (common[(i + 1) * width + j + 1] as number) + 1 : Math.max(below, right)
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
    } else if (
      j >= now.length ||
      (i < old.length && (common[(i + 1) * width + j] as number) >= (common[i * width + j + 1] as number))
    ) {
      lines.push(`-${old[i]}`)
      i += 1
    } else {
      lines.push(`+${now[j]}`)
      j += 1
    }
  }
  return lines
}

function shortened(lines: readonly string[]): string[] {
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some((line) => !line.startsWith(' ')),
  )
  return lines.flatMap((line, index) => {
    if (near[index] === true) return [line]
    return index === 0 || near[index - 1] === true ? ['…'] : []
  })
}
