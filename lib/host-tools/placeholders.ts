/**
 * What hosts write in place of an output: that they have cleared it, or that an earlier one has the same. It is neither the
 * output nor a version of a file. `crates/evidence/src/placeholder.rs` recognizes the same; both are tested with
 * `fixtures/golden/placeholders.json`, which says who writes what.
 */

/** `cleared`: the output was here and is no longer sent. `unchanged`: a file was read once more, and an earlier result has it. */
export type Placeholder = 'cleared' | 'unchanged'

/** Longer texts are outputs, in UTF-16 units. */
const LONGEST = 20_000

/** The text that hosts append to an output for the model alone. */
const APPENDED = /(?<=\S)\s*<system-reminder>[^]*?<\/system-reminder>\s*$/

const CLEARED: readonly RegExp[] = [
  /^\[Old tool result content cleared\]$/,
  /^\[Old assistant image content cleared\]$/,
  /^\[Previous output omitted\]$/,
  /^\[\[NOTE\] This file read has been removed to save space[^\n]*\]$/,
  /^Old environment output: \(\d+ lines? omitted\)$/,
  /^<tool_output_masked>\n[^]*\n<\/tool_output_masked>$/,
]

const UNCHANGED: readonly RegExp[] = [
  /^Wasted call \S file unchanged since your last Read\.[^\n]*$/,
  /^File unchanged since last read\. The content from the earlier [^\n]*$/,
  /^<system-reminder>This file is already in your context[^\n]*$/,
  /^\[File [^\n]+ unchanged since last read in this session [^\n]*\]$/,
]

/** The placeholder that a whole output consists of; undefined if it is a real output. */
export function placeholderOf(output: string): Placeholder | undefined {
  if (output.length > LONGEST) return undefined
  const text = output.trim()
  const alone = text.replace(APPENDED, '')
  const is = (pattern: RegExp): boolean => pattern.test(text) || pattern.test(alone)
  return CLEARED.some(is) ? 'cleared' : UNCHANGED.some(is) ? 'unchanged' : undefined
}
