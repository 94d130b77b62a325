/**
 * Results in which a host says that an earlier one has the same ("File unchanged since last read"). If that one has collapsed, they
 * point to nothing: then its reference follows the host's sentence.
 */
import { resolve } from 'node:path'
import { placeholderOf } from '../tools/index.ts'
import { callsIn, expandHome, realOf, resultText } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import type { Part } from './unit.ts'

/** The file and the part of it that a call reads. Hosts compare both. */
interface Read {
  path: string
  part: string
}

/** The number of files, the latest ones, that are looked up on the disk for another name of one. */
const MOST_LOOKED_UP = 64

/** A read of a whole file. */
const WHOLE = '[null,null]'

/** The reads of one conversation. */
export class Pointers {
  readonly #folder: string
  /** The latest read under each call ID. */
  readonly #reads = new Map<string, Read>()
  /** The last results that show a file, by its path and the part of it. */
  readonly #shown = new Map<string, Map<string, Part>>()

  /** `folder`: the one of relative paths. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Takes in a part of the conversation, in its order. Returns the earlier result that it points to, if it does. */
  note(part: Part): Part | undefined {
    const { message } = part
    for (const { id, name, arguments: own, engineArguments: args = own } of callsIn(message)) {
      const read = name === 'read' ? this.#read(args as Fields) : undefined
      if (read === undefined) this.#reads.delete(id)
      else this.#reads.set(id, read)
    }
    const read = message.role === 'toolResult' && message.isError !== true ? this.#reads.get(message.toolCallId ?? '') : undefined
    if (read === undefined) return undefined
    const text = resultText(message)
    const kind = placeholderOf(text)
    if (kind === 'unchanged') return this.#lastOf(read)
    if (kind === undefined && !FAILED.test(text)) this.#shown.set(read.path, (this.#shown.get(read.path) ?? new Map()).set(read.part, part))
    return undefined
  }

  #read({ path, offset, limit }: Fields): Read | undefined {
    if (typeof path !== 'string' || path === '') return undefined
    return { path: resolve(this.#folder, expandHome(path)), part: JSON.stringify([offset ?? null, limit ?? null]) }
  }

  /** The last result with this part of a file, or with all of it, under whatever name. */
  #lastOf({ path, part }: Read): Part | undefined {
    const shown = this.#shown.get(path) ?? this.#underOtherName(path)
    return shown?.get(part) ?? shown?.get(WHOLE)
  }

  #underOtherName(path: string): Map<string, Part> | undefined {
    const real = realOf(path)
    return this.#shown.get(real) ?? [...this.#shown].slice(-MOST_LOOKED_UP).findLast(([other]) => realOf(other) === real)?.[1]
  }
}

/** A failed read, where the format has no field that says so. */
const FAILED = /^error\b[^\n]*$/i
