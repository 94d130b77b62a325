/** The system prompt of a conversation, for people: it names the folder that the agent works in. */
import type { ContextManager } from '../session/index.ts'
import { systemText } from './request.ts'
import type { ModelRequest } from './request.ts'

/**
 * Records the system prompt of a conversation's first request. Later ones differ in a date or a count at most, and each would be
 * another write before a request.
 */
export async function notePrompt(manager: ContextManager, request: ModelRequest | undefined): Promise<void> {
  const text = request === undefined ? '' : systemText(request)
  if (text === '') return
  // A session begins with an empty one.
  const known = (await manager.get(`system_prompt:${manager.sessionId}`))?.['content']
  if (typeof known === 'string' && known !== '') return
  await manager.setSystemPrompt(text)
}
