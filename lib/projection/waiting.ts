/** Notices for a model whose provider refuses a message of the user behind results: those that another model got there. */
import { endsWithResult } from './shape.ts'

/** The messages with each notice that follows results moved to before the next words of the user; until then it waits. */
export function behindAnswers<T extends object>(messages: readonly T[], isNotice: (message: T) => boolean): T[] {
  const sent: T[] = []
  const waiting: T[] = []
  for (const message of messages) {
    if (isNotice(message) && (waiting.length > 0 || endsWithResult(sent))) {
      waiting.push(message)
      continue
    }
    if ((message as { role?: unknown }).role === 'user' && !endsWithResult(sent)) sent.push(...waiting.splice(0))
    sent.push(message)
  }
  return sent
}
