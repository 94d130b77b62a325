/** Removals that a gateway's conversations hold back. */
import type { Held } from '../ui/index.ts'
import type { Conversation } from './conversation.ts'

/** Returns what one conversation holds back; undefined if it is not open, or if nothing could leave. Never rejects. */
export async function heldIn(conversation: Conversation): Promise<Held | undefined> {
  if (!conversation.isOpen) return undefined
  try {
    const { projection } = await conversation.session()
    const held = await projection.heldBack()
    const { model = '', canRecall = false } = conversation.request ?? {}
    return held === undefined ? undefined : { ...held, model, ...(canRecall ? {} : { lacksRecall: true }) }
  } catch {
    // It is for people, and no request waits for it.
    return undefined
  }
}

/** Returns what is held back in the conversation that holds back most. */
export async function mostHeld(conversations: readonly Conversation[]): Promise<Held | undefined> {
  const all = await Promise.all(conversations.map(heldIn))
  return all.filter((one) => one !== undefined).toSorted((one, other) => other.tokens - one.tokens)[0]
}
