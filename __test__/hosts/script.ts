/** The model of the conformance suite: it does what the latest prompt says, one call after the other. */
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'

/**
 * `show a b+c` calls the tool `show` with a, then with b and c at once; `bring x` calls `activate`; anything else is
 * answered. `edit path old new n` shows `change`, and then makes the edit n times. Notices are no prompts.
 */
export function obedient(request: ModelRequest): Answer {
  const { messages, n } = request
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(show|bring|read|edit|say) /.test(text))
  const [verb, ...words] = (messages[at]?.text ?? '').split(/\s+/)
  const answered = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  if (verb === 'edit') {
    const [path, oldText, newText, times] = words
    if (answered === 0) return calls(['show', { name: 'change' }, `call_${n}`])
    return answered <= Number(times) ? calls(['edit', { path, oldText, newText }, `call_${n}`]) : `done ${n}`
  }
  const word = words[answered]
  if (verb === 'say' || word === undefined) return `done ${n}`
  if (verb === 'read') return calls(['read', { path: word }, `call_${n}`])
  const names = word.split('+')
  return calls(
    ...names.map((name, index): [string, object, string] =>
      verb === 'bring' ? ['activate', { id: name }, `call_${n}_${index}`] : ['show', { name }, `call_${n}_${index}`],
    ),
  )
}

/** Follows the prompt, and thinks first. */
export function thoughtful(request: ModelRequest) {
  const answer = obedient(request)
  const thinking = `thought ${request.n} ${'hm '.repeat(100)}`
  return typeof answer === 'string' ? { thinking, text: answer } : { thinking, ...answer }
}

/** The output of `show`: long, and different for each name. */
export function output(name: string): string {
  return Array.from({ length: 40 }, (_, n) => `${name} line ${n + 1}: ${'lorem ipsum '.repeat(3)}`).join('\n')
}
