/** The model's view of the branch beside Pi's own messages: what was replaced, shortened, removed and added, and why. */
import type { ExtensionCommandContext } from '@earendil-works/pi-coding-agent'
import { changeLines, requestChanges, widthOf } from '../lib/ui/index.ts'
import type { ComparedMessage, RequestChanges } from '../lib/ui/index.ts'
import type { Host } from './host.ts'
import { NOTICE } from './messages.ts'

/** The most changes that are listed, the newest ones. */
const MOST = 30

/** The answer to `/context seen`, for the user. */
export async function seen(host: Host, ctx: ExtensionCommandContext): Promise<string> {
  host.manager()
  const all = changesOf(ctx)
  // Pi leaves a column free on either side.
  const lines = changeLines(all, widthOf(process.stdout) - 2, MOST)
  const left = all.changes.length - MOST
  return [
    ...lines,
    ...(left > 0
      ? [`${left} earlier changes: "pi-context-manager inspect ${ctx.sessionManager.getSessionId()} --call -1" shows the last request with all of them.`]
      : []),
  ].join('\n')
}

/** Compares the branch from its newest compaction on. Our notices are messages of the branch that Pi alone would not have. */
function changesOf({ sessionManager }: ExtensionCommandContext): RequestChanges {
  const shown = new Map(sessionManager.buildSessionProjection().entries.map((entry) => [entry.sourceEntry.id, entry.messages]))
  const [own, sent]: [ComparedMessage[], ComparedMessage[]] = [[], []]
  for (const entry of sessionManager.getBranch()) {
    const messages = shown.get(entry.id)
    if (messages === undefined) continue
    sent.push(...(messages as ComparedMessage[]))
    if (entry.type === 'message') own.push(entry.message as ComparedMessage)
    else if (entry.type !== 'custom_message' || entry.customType !== NOTICE) own.push(...(messages as ComparedMessage[]))
  }
  return requestChanges(own, sent)
}
