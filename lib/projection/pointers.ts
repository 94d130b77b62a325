/**
 * Results in which a host says that an earlier one has the same ("File unchanged since last read"). If that one has collapsed, they
 * point to nothing: then its reference follows the host's sentence.
 */
import { resolve } from 'node:path'
import { placeholderOf } from '../tools/index.ts'
import { callsIn, resultText, textOf } from '../core/index.ts'
import type { Part } from './unit.ts'

/** The reads of one conversation. */
export class Pointers {
  readonly #folder: string
  /** The file of the latest read under each call ID. */
  readonly #paths = new Map<string, string>()
  /** The last result that shows a file, by its path. */
  readonly #shown = new Map<string, Part>()

  /** `folder`: the one of relative paths. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Takes in a part of the conversation, in its order. Returns the earlier result that it points to, if it does. */
  note(part: Part): Part | undefined {
    const { message } = part
    for (const { id, name, arguments: own, engineArguments: args = own } of callsIn(message)) {
      const path = name === 'read' ? textOf((args as { path?: unknown }).path) : ''
      if (path === '') this.#paths.delete(id)
      else this.#paths.set(id, path.startsWith('~') ? path : resolve(this.#folder, path))
    }
    const path = message.role === 'toolResult' && message.isError !== true ? this.#paths.get(message.toolCallId ?? '') : undefined
    if (path === undefined) return undefined
    const kind = placeholderOf(resultText(message))
    if (kind === undefined) this.#shown.set(path, part)
    return kind === 'unchanged' ? this.#shown.get(path) : undefined
  }
}
