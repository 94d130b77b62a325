/**
 * Tells a conversation in which its host has changed something early (a date, a reminder, outputs that it has cleared) from another
 * one that begins like it: what the model has answered since the change is still there.
 */
import { fingerprint } from '../projection/index.ts'
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'

/**
 * True if messages are those of a conversation with a change before its last answer. `common` of them are the same from
 * the start. Where most answers behind that are missing, or the last one is, the host has compacted the conversation, its user
 * has gone back, or it is another one.
 */
export function isEditOf(before: readonly object[], now: readonly object[], common: number): boolean {
  // Hashing comes last: most requests that differ are short questions on the side.
  if (now.length * 2 < before.length) return false
  const answers = answersIn(before, common)
  const last = answers.at(-1)
  if (last === undefined) return isSamePrompt(before, now) && answersIn(now, common).length > 0
  const left = new Map<string, number>()
  for (const answer of answersIn(now, common)) left.set(answer, (left.get(answer) ?? 0) + 1)
  if (!left.has(last)) return false
  let found = 0
  for (const answer of answers) {
    const count = left.get(answer) ?? 0
    if (count === 0) continue
    left.set(answer, count - 1)
    found += 1
  }
  return found * 2 >= answers.length
}

/** The fingerprints of what the model has said or called, from one message on. A host may have left out its reasoning. */
function answersIn(messages: readonly object[], from: number): string[] {
  return messages.slice(from).flatMap((message) => {
    const { role, type, content, parts } = message as Fields
    if (role === 'model' && Array.isArray(parts)) return [fingerprint({ parts: parts.filter((part) => !isFields(part) || part['thought'] !== true) })]
    if (role !== 'assistant' && !(typeof type === 'string' && type.endsWith('_call'))) return []
    const { tool_calls: calls } = message as Fields
    // Goose merges the answers of a turn into one.
    if (Array.isArray(calls) && !Array.isArray(content))
      return [...(content ? [fingerprint({ content })] : []), ...calls.map((call) => fingerprint(call as object))]
    if (!Array.isArray(content)) return [fingerprint(message)]
    const said = content.filter((block) => !isFields(block) || (block['type'] !== 'thinking' && block['type'] !== 'redacted_thinking'))
    return said.length === 0 ? [] : [fingerprint({ ...message, content: said })]
  })
}

/** True if what users have said in the first request is in a later one, but for single lines: the time, a folder, a reminder. */
function isSamePrompt(before: readonly object[], now: readonly object[]): boolean {
  const [lines, left] = [linesIn(before), new Set(linesIn(now))]
  return lines.length > 1 && 2 * lines.filter((line) => !left.has(line)).length < lines.length
}

function linesIn(messages: readonly object[]): string[] {
  const texts = (messages as Fields[]).flatMap(({ role, content }) => (role === 'user' && typeof content === 'string' ? [content] : []))
  return texts.flatMap((text) => text.split('\n')).filter((line) => line.trim() !== '')
}
