/** What a form hides of a call: its arguments come back together with its output. */
import type { ObjectDocument } from '../../index.js'
import { callsOf, isEqual } from '../projection/index.ts'
import { isFields } from '../core/index.ts'
import type { Shape } from '../projection/index.ts'

/**
 * The arguments of a recorded call that messages do not show whole. Asked of what was sent: the engine knows only its own form,
 * and the first messages of a conversation may be in the one of another.
 */
export function hiddenArguments(document: ObjectDocument, sent: readonly object[], shape: Shape): object | undefined {
  const args: unknown = document['args']
  if (document.type !== 'toolcall' || !isFields(args) || Object.keys(args).length === 0) return undefined
  const names = new Set(callsOf(document['xt/id']))
  for (let at = 0; at < sent.length; ) {
    const { size, parts } = shape.read(sent, at)
    at += size
    for (const { role, content } of parts) {
      if (role !== 'assistant' || typeof content === 'string') continue
      for (const block of content) if (block.type === 'toolCall' && 'id' in block && names.has(block.id) && isEqual(block.arguments, args)) return undefined
    }
  }
  return args
}
