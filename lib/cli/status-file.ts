/** A file with a line about each session of a gateway, which the agent's status line reads. */
import { accountLine, hostSession, mostHeld } from '../gateway/index.ts'
import type { Gateway } from '../gateway/index.ts'
import { writePrivateFile } from '../core/index.ts'
import { heldStatus } from '../ui/index.ts'

/** The variable in which a program finds the file. */
export const STATUS_FILE = 'PI_CONTEXT_STATUS'

/** Keeps the file up to date: it is written after each call, and never while it is being written. Returns what ends that. */
export function keepStatus({ ledger, conversations }: Pick<Gateway, 'ledger' | 'conversations'>, path: string): () => void {
  const lines: Record<string, string> = {}
  let [isWriting, isDue, isOver] = [false, false, false]
  const write = async (): Promise<void> => {
    isDue = true
    if (isWriting) return
    isWriting = true
    while (isDue && !isOver) {
      isDue = false
      for (const session of new Set(ledger.sessions.map(({ session: id }) => hostSession(id)))) {
        const sums = ledger.sessions.filter(({ session: id }) => hostSession(id) === session)
        const held = await mostHeld(conversations.all.filter(({ id }) => hostSession(id) === session))
        const waits = held === undefined ? undefined : heldStatus(held)
        lines[session.slice(session.indexOf(':') + 1)] = [accountLine(sums)?.split(': ')[0], waits].filter((part) => part !== undefined).join(' · ')
      }
      try {
        if (!isOver) writePrivateFile(path, JSON.stringify(lines))
      } catch {
        // The agent works without it.
      }
    }
    isWriting = false
  }
  const stop = ledger.listen(() => void write())
  return () => {
    isOver = true
    stop()
  }
}
