/**
 * Files that an agent would have had to read again: an edit must give the text that it replaces, so that text must be
 * in sight. Where a policy no longer shows it and the plain conversation does, the agent reads the file once more.
 */
import type { Block } from './blocks.ts'
import { replacementsOf } from './files.ts'
import type { Files } from './files.ts'
import { callsOf } from './recording.ts'
import type { Entry, Message } from './recording.ts'
import { textOf } from './recording.ts'

/** Tokens of an answer that only asks for a file. */
export const ASKING_TOKENS = 60

/** Pi shows at most so many characters and lines of a file at once. */
const MAX_READ_UNITS = 50 * 1024
const MAX_READ_LINES = 2000

/** The texts of one file that an answer's edits replace. */
export interface Need {
  path: string
  texts: string[]
}

/** What an answer's edits need to have in sight. */
export function needsOf(message: Message): Need[] {
  const needs = new Map<string, string[]>()
  for (const call of callsOf(message)) {
    const path = call.arguments?.['path']
    if (call.name !== 'edit' || typeof path !== 'string') continue
    const texts = replacementsOf(call.arguments ?? {}).flatMap(({ oldText }) => (oldText === '' ? [] : [oldText]))
    needs.set(path, [...(needs.get(path) ?? []), ...texts])
  }
  return [...needs].map(([path, texts]) => ({ path, texts }))
}

/** Those texts that a request shows: in blocks about that file, or (`anywhere`) in any. */
export function seen(blocks: readonly Block[], { path, texts }: Need, anywhere: boolean): Set<string> {
  const about = anywhere ? blocks : blocks.filter((block) => block.path === path)
  return new Set(texts.filter((text) => about.some((block) => block.texts.some((one) => one.includes(text)))))
}

/** The newest text of each file that the recording shows in any way, for those whose whole text is unknown. */
export class LastReads {
  readonly #reads = new Map<string, string>()

  /** Takes in a result with the path of its read. */
  take(path: string, entry: Entry): void {
    this.#reads.set(path, textOf(entry.message))
  }

  /** What a read of a file shows now. */
  text(path: string, files: Files): string | undefined {
    const whole = files.content(path)
    if (whole === undefined) return this.#reads.get(path)
    const lines = whole.split('\n', MAX_READ_LINES + 1)
    return lines.slice(0, MAX_READ_LINES).join('\n').slice(0, MAX_READ_UNITS)
  }
}

/** The two messages of a read that the recording does not have. */
export function readAgain(path: string, text: string, number: number, at: number): [answer: Entry, result: Entry] {
  const id = `again_${number}`
  const call = { type: 'toolCall', id, name: 'read', arguments: { path } }
  return [
    { key: `${id}_call`, at, message: { role: 'assistant', content: [call], stopReason: 'toolUse', timestamp: at } },
    {
      key: `${id}_result`,
      at,
      message: { role: 'toolResult', toolCallId: id, toolName: 'read', content: [{ type: 'text', text }], isError: false },
    },
  ]
}
