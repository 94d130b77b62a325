/**
 * Results in which a host says that an earlier one has the same ("file unchanged since your last Read"). If that one has
 * collapsed, they point to nothing: then its reference follows the host's sentence.
 */
import { isReference, pointerTo } from '../lines/index.ts'
import { placeholderOf } from '../tools/index.ts'
import type { EngineMessage } from '../core/index.ts'
import { resultText } from '../core/index.ts'
import { takeOrigin } from '../projection/index.ts'
import type { Shape } from '../projection/index.ts'

/** The reads of a conversation, and which of them point to which. */
export interface Pointers {
  /** The last call that has shown a file, by its path. */
  readonly reads: Map<string, string>
  /** The call that has shown the file, by the call whose result says so. */
  readonly targets: Map<string, string>
}

/** Notes the result of a call that reads a file. */
export function notePointer({ reads, targets }: Pointers, path: string, result: EngineMessage): void {
  const { toolCallId = '' } = result
  const target = reads.get(path)
  if (placeholderOf(resultText(result)) === undefined) reads.set(path, toolCallId)
  else if (target !== undefined && target !== toolCallId) targets.set(toolCallId, target)
}

/** The messages that go out, in which each pointer to a result that is not shown has its reference. `own` are the host's. */
export function withTargets(sent: object[], own: readonly object[], { targets }: Pointers, shape: Shape): object[] {
  if (targets.size === 0) return sent
  const wanted = new Set(targets.values())
  const held = new Set<string>()
  for (const [, part] of results(own, shape)) if (wanted.has(part.toolCallId ?? '')) held.add(part.toolCallId ?? '')
  const shown = new Map<string, string>()
  const edits = new Map<number, Map<number, string>>()
  for (const [at, part, number] of results(sent, shape)) {
    const { toolCallId = '' } = part
    const text = resultText(part)
    if (wanted.has(toolCallId)) shown.set(toolCallId, text)
    const target = targets.get(toolCallId)
    if (target === undefined || !held.has(target) || placeholderOf(text) !== 'unchanged') continue
    const reference = referenceTo(target, shown.get(target))
    if (reference !== undefined) edits.set(at, (edits.get(at) ?? new Map<number, string>()).set(number, `${text}\nIt has collapsed: ${reference}`))
  }
  if (edits.size === 0) return sent
  return sent.flatMap((message, at) => {
    const own = edits.get(at)
    if (own === undefined) return [message]
    const written = shape.write([message], new Map([...own].map(([number, text]) => [number, { kind: 'result', text }])))
    for (const one of written) takeOrigin(one, message)
    return written
  })
}

/** The reference to a result, if it is not shown as it is. `text` is sent in its place; undefined if it became a line. */
function referenceTo(callId: string, text: string | undefined): string | undefined {
  if (text === undefined) return pointerTo(callId, 'read')
  return isReference(text) ? text.split('\n', 1)[0] : undefined
}

/** The results of a conversation, each with the index of its message and its place there. */
function* results(messages: readonly object[], shape: Shape): Generator<[at: number, part: EngineMessage, number: number]> {
  for (let at = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    for (const [number, part] of parts.entries()) if (part.role === 'toolResult') yield [at, part, number]
    at += size
  }
}
