/**
 * The files of a recorded session, as far as the recording shows them; on this disk they are missing or have changed.
 * A whole read shows a file's text, a write sets it, an edit changes it; everything else is unknown.
 */
import { withoutLineNumbers } from '../tools/index.ts'
import type { Calls } from './blocks.ts'
import type { RecordedEntry } from './recording.ts'
import { textOf } from './recording.ts'

/** A read or write of a file, as a tool result reports it. */
export interface FileEvent {
  kind: 'read' | 'written'
  path: string
  content: string
  /** The requested part, if the read was partial. */
  offset?: number
  limit?: number
}

/** One text that an edit must find in a file. */
interface Replacement {
  oldText: string
  newText: string
}

/** The most bytes of a path. */
const LONGEST_PATH = 4096

/** True if a path can be one of a file. */
function isPath(path: string): boolean {
  return path !== '' && !path.includes('\0') && Buffer.byteLength(path) <= LONGEST_PATH
}

/** The known texts of files by path, in the order of the recording. */
export class Files {
  readonly #contents = new Map<string, string>()

  /** Returns what a result says; undefined if it is not about a file, or if the file's text is unknown. */
  take(entry: RecordedEntry, calls: Calls): FileEvent | undefined {
    const { message } = entry
    if (message.role !== 'toolResult' || message.isError === true) return undefined
    const call = calls.of(message.toolCallId)
    if (call?.path === undefined || !isPath(call.path)) return undefined
    switch (call.name) {
      case 'read':
        return this.#read(call.path, call.args, entry)
      case 'write': {
        const content = call.args['content']
        return typeof content === 'string' ? this.#written(call.path, content) : this.#forget(call.path)
      }
      case 'edit': {
        const content = entry.file?.content ?? edited(this.#contents.get(call.path), replacementsOf(call.args), call.args['replace_all'] === true)
        return content === undefined ? this.#forget(call.path) : this.#written(call.path, content)
      }
      default:
        return undefined
    }
  }

  /** A file's text, where it is known. */
  content(path: string): string | undefined {
    return this.#contents.get(path)
  }

  #read(path: string, args: Record<string, unknown>, entry: RecordedEntry): FileEvent | undefined {
    if (entry.file !== undefined) {
      this.#contents.set(path, entry.file.content)
      return { kind: 'read', path, content: entry.file.content }
    }
    const content = this.#contents.get(path)
    if (content === undefined) return undefined
    const offset = typeof args['offset'] === 'number' ? args['offset'] : undefined
    const limit = typeof args['limit'] === 'number' ? args['limit'] : undefined
    if (!showsPart(textOf(entry.message), content, offset ?? 1)) return this.#forget(path)
    return {
      kind: 'read',
      path,
      content,
      ...(offset !== undefined && { offset }),
      ...(limit !== undefined && { limit }),
    }
  }

  #written(path: string, content: string): FileEvent {
    this.#contents.set(path, content)
    return { kind: 'written', path, content }
  }

  #forget(path: string): undefined {
    this.#contents.delete(path)
    return undefined
  }
}

/** The replacements of an edit's arguments, in Pi's present and earlier form. */
export function replacementsOf(args: Record<string, unknown>): Replacement[] {
  const list = Array.isArray(args['edits']) ? (args['edits'] as unknown[]) : [args]
  return list.flatMap((one) => {
    const { oldText, newText } = (one ?? {}) as Partial<Replacement>
    return typeof oldText === 'string' && typeof newText === 'string' ? [{ oldText, newText }] : []
  })
}

/** A text after replacements; undefined if one does not match. `all` replaces each text wherever it occurs. */
export function edited(content: string | undefined, replacements: Replacement[], all: boolean): string | undefined {
  if (content === undefined || replacements.length === 0) return undefined
  let text = content
  for (const { oldText, newText } of replacements) {
    if (oldText === '' || !text.includes(oldText)) return undefined
    text = all ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText)
  }
  return text
}

/** True if a read's first lines match the text at that place; if not, the file has changed unseen. */
function showsPart(shown: string, content: string, offset: number): boolean {
  const expected = content.split('\n').slice(offset - 1, offset + 4)
  const lines = withoutLineNumbers(shown).split('\n').slice(0, expected.length)
  const count = Math.min(expected.length, lines.length, 3)
  return count > 0 && lines.slice(0, count).every((line, index) => line === expected[index])
}
