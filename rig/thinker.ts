/** A scripted model that thinks. */
import { calls } from './reply.ts'
import type { Reply } from './reply.ts'
import type { ModelRequest } from './exchange.ts'

/** Thinks before each answer; a prompt `show a b` calls twice, one after the other. */
export function thinker(request: ModelRequest): Reply {
  const at = request.messages.findLastIndex(({ role, text }) => role === 'user' && text.startsWith('show '))
  const words = (request.messages[at]?.text ?? '').split('\n', 1)[0]!.split(' ').slice(1)
  const word = words[request.messages.slice(at + 1).filter(({ role }) => role === 'assistant').length]
  const thinking = `thought ${request.n} ${'hm '.repeat(50)}`
  return word === undefined ? { thinking, text: `done ${request.n}` } : { thinking, ...calls(['show', { name: word }, `call_${request.n}`]) }
}
