/** The contents of messages with some of their texts shortened or left out, as an edit says. */
import type { TextEdit } from '../index.js'

/** A content with its texts as the edit has them. Blocks are counted in the content as it is given. */
export function shortened<T>(content: string | readonly T[], texts: readonly TextEdit[]): string | T[] {
  if (typeof content === 'string') return texts.find(({ block }) => block === 0)?.text ?? content
  const edits = new Map(texts.map((one) => [one.block, one]))
  return content.flatMap((block, number) => {
    const edit = edits.get(number)
    if (edit === undefined) return [block]
    return edit.text === undefined ? [] : [{ ...block, text: edit.text }]
  })
}
