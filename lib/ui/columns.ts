/** Tables of plain text. */

/** The look of a table. */
interface TableLook {
  /** The number of columns, from the left, whose cells are at the left; the others have them at the right. Default 1. */
  left?: number
  /** Text between columns. Default two spaces. */
  gap?: string
}

/** Rows as lines of equal columns. Lines have no spaces at their ends. */
export function columns(rows: readonly (readonly string[])[], { left = 1, gap = '  ' }: TableLook = {}): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length)
  return rows.map((row) =>
    row
      .map((cell, at) => (at < left ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join(gap)
      .trimEnd(),
  )
}

/**
 * Rows as lines of equal columns, the first one with the heads; without those of the `spare` columns, the first one first, for which
 * the width has no room.
 */
export function fitted(rows: readonly (readonly string[])[], width: number, spare: readonly string[], { left = 1 }: TableLook = {}): string[] {
  const lines = columns(rows, { left })
  const [heads = []] = rows
  const name = spare.find((one) => heads.includes(one))
  if (name === undefined || lines.every((line) => line.length <= width)) return lines
  const at = heads.indexOf(name)
  return fitted(
    rows.map((row) => row.filter((_, place) => place !== at)),
    width,
    spare,
    { left: at < left ? left - 1 : left },
  )
}

/** A text in at most `most` characters: a longer one loses its middle. */
export function middleCut(text: string, most: number): string {
  if (text.length <= most) return text
  const end = Math.floor((most - 1) / 3)
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`
}

/** A text in lines of at most `most` characters, cut between words. `indent` precedes all lines but the first. */
export function wrapped(text: string, most: number, indent = ''): string[] {
  const lines: string[] = []
  // A number keeps its percent sign.
  for (const word of text.split(/ (?!%)/)) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > most) lines.push(last === undefined ? word : indent + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/**
 * Lines for a terminal of a width: longer ones are cut between words and keep their indent. What stands in quotation marks, such as
 * a command, stays whole where it fits.
 */
export function atWords(text: string, width: number): string {
  const lines = text.split('\n').flatMap((line) => {
    if (line.length <= width) return [line]
    const indent = /^ */.exec(line)?.[0] ?? ''
    const whole = line.slice(indent.length).replace(/"[^"]*"/g, (quote) => (quote.length > width - indent.length ? quote : quote.replaceAll(' ', BOUND)))
    const [first = '', ...others] = wrapped(whole, width - indent.length)
    return [first, ...others].map((one) => indent + one.replaceAll(BOUND, ' '))
  })
  return lines.join('\n')
}

/** Stands for a space at which no line ends. It is in no text: it controls a terminal. */
const BOUND = '\u0001'

/** The width of the output in characters; 80 where it is not known. */
export function widthOf(stream: { isTTY?: boolean; columns?: number }): number {
  return stream.isTTY === true && stream.columns !== undefined && stream.columns > 0 ? stream.columns : 80
}
