/** The files that a conversation's calls show or change, recorded before the results themselves. */
import { resolve } from 'node:path'
import type { EngineMessage } from '../core/index.ts'
import { callsIn, resultText } from '../core/index.ts'
import { objectsOf } from '../projection/index.ts'
import { placeholderOf } from '../tools/index.ts'
import type { EngineCall, ShownLines } from '../tools/index.ts'
import type { ContextManager } from '../session/index.ts'
import type { Api } from './request.ts'
import { hostShape } from './shape.ts'
import type { CallFacts } from './shape.ts'

/** A file with one of these looks different in an output, even without the numbers before its lines. */
const NOT_SHOWN = /^\uFEFF|\r|[^\n]{2000}/

/** The format and folder of the conversation, and what is known of its calls. */
interface Known {
  api: Api
  cwd: string
  facts: CallFacts
}

/** Records the files that the results from one message on show, or that their calls have changed. Those of a message are recorded once. */
export async function meetFiles(manager: ContextManager, known: Known, messages: readonly object[], from: number): Promise<void> {
  const { facts } = known
  const shape = hostShape(known.api, facts)
  for (let at = from; at < messages.length;) {
    const first = messages[at] as object
    const met = facts.met.get(first)
    if (met !== undefined && met.isPlainRecall === facts.isPlainRecall) {
      at += 1
      for (const [id, call] of met.calls) facts.calls.set(id, call)
      continue
    }
    const { size, parts } = shape.read(messages, at)
    at += size
    const calls = parts.flatMap(callsIn).flatMap(({ id }) => {
      const call = facts.calls.get(id)
      return call === undefined ? [] : [[id, call] as const]
    })
    for (const part of parts) if (part.role === 'toolResult') await meetResult(manager, known, part)
    if (shape.isAlone === true) facts.met.set(first, { calls, isPlainRecall: facts.isPlainRecall })
  }
}

function fullPath(cwd: string, path: string): string {
  return path.startsWith('~') ? path : resolve(cwd, path)
}

async function meetResult(manager: ContextManager, known: Known, part: EngineMessage): Promise<void> {
  const { cwd, facts } = known
  const { toolCallId = '', isError } = part
  const call = facts.calls.get(toolCallId)
  if (call === undefined || isError === true) return
  if (placeholderOf(resultText(part)) !== undefined) return
  for (const path of call.writes ?? []) await manager.indexWritten(fullPath(cwd, path), null, toolCallId).catch(() => undefined)
  if (call.reads === undefined) return
  const found = await manager.indexFile(fullPath(cwd, call.reads), null, toolCallId).catch(() => undefined)
  const text = found === undefined ? undefined : (await manager.get(found.id))?.content
  const isShown = typeof text === 'string' && !NOT_SHOWN.test(text) && (call.shows === undefined || (await showsFile(manager, part, call, text)))
  if (!isShown) facts.altered.add(toolCallId)
}

/** True if the output of a command is that of a file; in an earlier process, it was compared with the file of then. */
async function showsFile(manager: ContextManager, part: EngineMessage, { shows }: EngineCall, text: string): Promise<boolean> {
  const { sessionIndex } = await manager.sessionSets()
  for await (const { tool } of objectsOf(manager, part.toolCallId ?? '', new Set(sessionIndex))) return tool === 'read'
  return shows === undefined || showsLines(text, shows, part.lines ?? resultText(part))
}

/** True if an output is exactly the lines of a text that were asked for; its host may have left some out. */
function showsLines(text: string, { first, last }: ShownLines, output: string): boolean {
  const lines = text.split('\n').slice(first - 1, last ?? undefined)
  return lines.join('\n').replace(/\n$/, '') === output.replace(/\n$/, '')
}
