/** Outputs that show a file with a number before each line. */

/** The forms in use: `12→text` and `12<tab>text` (Claude Code), `12: text` (OpenCode), `12 | text` and `L12: text`. */
const NUMBERED = /^ *L?(\d+)(?:→|\t|: | ?\| ?)/

/** The text that Claude Code and others append to an output for the model alone. */
const APPENDED = /\n*<system-reminder>[^]*?<\/system-reminder>\s*$/

/** OpenCode puts the lines into an element, names the file before it, and says in its last line how much is left. */
const WRAPPED = /^(?:<path>[^\n]*<\/path>\n<type>file<\/type>\n)?<(content|file)>\n([^]*?)(?:\n\n\([^\n]*\))?\n<\/\1>$/

/**
 * The lines of a file that an output shows, without their numbers. Undefined if the output is anything but consecutively
 * numbered lines.
 */
export function shownLines(output: string): string | undefined {
  const whole = output.replace(APPENDED, '')
  const text = WRAPPED.exec(whole)?.[2] ?? whole
  const first = NUMBERED.exec(text)
  if (first === null) return undefined
  const lines: string[] = []
  let next = Number(first[1])
  for (const line of text.split('\n')) {
    const found = NUMBERED.exec(line)
    if (found === null || Number(found[1]) !== next) return undefined
    lines.push(line.slice(found[0].length))
    next += 1
  }
  return lines.join('\n')
}

const ARROWED = /^ *\d+→/m

/** A text in which numbers before `→` are taken out, wherever they stand. */
export function withoutLineNumbers(text: string): string {
  return (text.includes('\n') ? shownLines(text) : undefined) ?? (ARROWED.test(text) ? text.replace(/^ *\d+→/gm, '') : text)
}
