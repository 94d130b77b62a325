/**
 * Remembers in which form each conversation went out last, so that a gateway that follows one that was killed, or works beside
 * another one, sends the same bytes. A form is written before its request leaves. It does not have the host's messages: it
 * says by hashes which ones they were, and what stood in their place.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { statOf, writePrivateFile } from '../core/index.ts'
import type { EditedItem } from '../projection/index.ts'
import { formFile, formFiles, headOf, readForm, stateOf, tidyForms } from './form-files.ts'
import type { Line, Named, Remembered, StoredForm } from './form-files.ts'
import { beginningOf } from './beginning.ts'
import { commonLength, linkOf } from './prefix.ts'
import { sealed } from './seal.ts'

/** The form in which a conversation was last sent. */
export interface LastForm {
  /** The host's messages in the request: entry n is the hash of the first n of them. */
  chain: readonly string[]
  /** When it went out, in milliseconds since the epoch. */
  atMs: number
  /** The items that went out instead of them. */
  items: readonly EditedItem[]
  /** True once anything in the conversation has been edited. */
  wasEdited: boolean
  /** The marks of what was said, if the host names no session ({@link marksOf}). */
  said?: readonly string[]
}

/** A file, as far as this process knows it. */
interface Known {
  /** Its state when it was read or written. */
  state: string
  remembered: Remembered | undefined
  /** The last form that this process has written to it, and how many items are in the file. */
  own?: { form: LastForm; count: number }
}

/** The number of names and files known at a time. */
const MOST = 500

/** The number of conversations of one name: where a host gives no IDs, all its conversations have the same name. */
const MOST_OF_ONE = 20

/** A file is written anew once it has this many times the items of its form. */
const MOST_DEAD = 4

/** The forms of a folder that only this user can read. Without a folder they are only in memory. */
export class Forms {
  readonly #folder: string | undefined
  readonly #run = randomUUID()
  readonly #files = new Map<string, Known>()
  /** Forms that are in no file, by name. */
  readonly #memory = new Map<string, readonly Remembered[]>()

  /** Tidies the folder up. */
  constructor(folder?: string) {
    this.#folder = folder
    if (folder !== undefined) tidyForms(folder)
  }

  /** The conversations of a name as they are now, the latest last. */
  of(key: string): readonly Remembered[] {
    return [...this.#stored(key), ...(this.#memory.get(key) ?? [])]
  }

  /** True if another process has gone on with a conversation that this one knows. */
  isForeign(key: string, id: string): boolean {
    const name = formFile(key, id)
    const known = this.#files.get(name)
    if (this.#folder === undefined || known === undefined) return false
    const stat = statOf(join(this.#folder, name))
    return stat !== undefined && stateOf(stat) !== known.state
  }

  /**
   * Notes the form of a request that is about to leave. Throws the system's error if it can't be written; a later process
   * then takes the form from the record, which costs it the provider's cache at most.
   */
  note(key: string, named: Named, form: LastForm): void {
    const others = (this.#memory.get(key) ?? []).filter(({ id }) => id !== named.id)
    const remembered = { ...named, form: inMemory(form) }
    this.#memory.set(key, [...others.slice(1 - MOST_OF_ONE), remembered])
    dropFirst(this.#memory)
    if (!this.#write(key, named, form, remembered)) return
    if (others.length === 0) this.#memory.delete(key)
    else this.#memory.set(key, others)
  }

  #stored(key: string): Remembered[] {
    const folder = this.#folder
    if (folder === undefined) return []
    return formFiles(folder, key)
      .slice(-MOST_OF_ONE)
      .flatMap(({ name, state }) => {
        let known = this.#files.get(name)
        if (known?.state !== state) known = this.#know(name, { state, remembered: readForm(join(folder, name), key) })
        return known.remembered ?? []
      })
  }

  #know(name: string, known: Known): Known {
    this.#files.delete(name)
    this.#files.set(name, known)
    dropFirst(this.#files)
    return known
  }

  /** Returns false if the form has to stay in memory. */
  #write(key: string, named: Named, form: LastForm, remembered: Remembered): boolean {
    const name = formFile(key, named.id)
    if (this.#folder === undefined) return false
    const path = join(this.#folder, name)
    const { own, state } = this.#files.get(name) ?? {}
    if (own !== undefined) {
      const [kept, linked] = [commonLength(own.form.items, form.items), sameLinks(own.form.chain, form.chain)]
      const count = own.count + form.items.length - kept
      const line = this.#line(form, kept, linked)
      const after = count > MOST_DEAD * form.items.length + 100 ? undefined : appended(path, state as string, line)
      if (after !== undefined) {
        this.#know(name, { state: after, remembered, own: { form, count } })
        return true
      }
    }
    this.#files.delete(name)
    writePrivateFile(path, `${headOf(key, named)}\n${JSON.stringify(this.#line(form, 0, 0))}\n`)
    this.#know(name, { state: stateOf(statSync(path)), remembered, own: { form, count: form.items.length } })
    return true
  }

  #line({ chain, items, atMs, wasEdited, said }: LastForm, kept: number, linked: number): Line {
    const marks = said === undefined ? {} : { said }
    return { run: this.#run, kept, linked, atMs, wasEdited, ...marks, items: sealed(items, kept, chain), links: chain.slice(linked).map(linkOf) }
  }
}

/** A form of this process, as those of others. */
export function inMemory({ chain, items, atMs, wasEdited, said = [] }: LastForm): StoredForm {
  const count = chain.length - 1
  return { links: chain.map(linkOf), atMs, wasEdited, said, open: (_, length) => beginningOf(items, count, length) }
}

/** The number of entries that two chains have in common. */
function sameLinks(one: readonly string[], other: readonly string[]): number {
  let length = Math.min(one.length, other.length)
  // Each entry includes all entries before it.
  while (length > 0 && one[length - 1] !== other[length - 1]) length -= 1
  return length
}

/** Leaves the last entries of a map, as many as are remembered. */
function dropFirst(map: Map<string, unknown>): void {
  for (const key of [...map.keys()].slice(0, Math.max(0, map.size - MOST))) map.delete(key)
}

/**
 * Appends a line to a file that is as this process knows it. Returns its new state; undefined if another process erased it or
 * wrote to it.
 */
function appended(path: string, state: string, line: Line): string | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_WRONLY | constants.O_APPEND)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    if (stateOf(fstatSync(file)) !== state) return undefined
    writeSync(file, `${JSON.stringify(line)}\n`)
    return stateOf(fstatSync(file))
  } finally {
    closeSync(file)
  }
}
