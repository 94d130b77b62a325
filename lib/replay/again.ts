/**
 * Files that an agent would have had to read again: an edit must give the text that it replaces, so that text must be
 * in sight. Where a policy no longer shows it and the plain conversation does, the agent reads the file once more.
 */
import type { Block } from './blocks.ts'
import { replacementsOf } from './files.ts'
import type { Files } from './files.ts'
import { callsOf } from './recording.ts'
import type { Entry, Message } from './recording.ts'

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

/**
 * What a read of a file brings back: the newest output of the plain conversation that shows the text, be it the whole
 * file or the part that the agent had asked for; where no output does, the file as it is known.
 */
export function textToRead(plain: readonly Block[], need: Need, files: Files): string | undefined {
  const missing = need.texts
  const shows = (block: Block): boolean => missing.some((text) => block.texts.some((one) => one.includes(text)))
  const output = plain.findLast((block) => block.path === need.path && block.output !== undefined && shows(block))
  if (output?.output !== undefined) return output.output
  const whole = files.content(need.path)
  if (whole !== undefined) {
    const lines = whole.split('\n', MAX_READ_LINES + 1)
    return lines.slice(0, MAX_READ_LINES).join('\n').slice(0, MAX_READ_UNITS)
  }
  return plain.findLast(shows)?.texts.find((one) => missing.some((text) => one.includes(text)))
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
      message: {
        role: 'toolResult',
        toolCallId: id,
        toolName: 'read',
        content: [{ type: 'text', text }],
        isError: false,
      },
    },
  ]
}
