/**
 * Remembers in which form each conversation went out last, so that a gateway that follows one that was killed, or works beside
 * another one, sends the same bytes. A form is written before its request leaves. It does not have the host's messages: it
 * says by hashes which ones they were, and what stood in their place.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { statOf, writePrivateFile } from '../core/index.ts'
import { isEdited, nextsOf } from '../projection/index.ts'
import type { EditedItem } from '../projection/index.ts'
import { formFile, formFiles, headOf, MOST_BESIDE, readForm, stateOf, tidyForms } from './form-files.ts'
import type { BesideLine, BranchMark, Line, Named, Remembered, StoredForm, WholeLine } from './form-files.ts'
import { beginningOf } from './beginning.ts'
import type { LastChoice } from '../models/index.ts'
import { commonLength, linkOf } from './prefix.ts'
import { sealed } from './seal.ts'
import type { Traces } from './traces.ts'

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
  /** The marks of what was said ({@link marksOf}). */
  said?: readonly string[]
  /** Its traces, if they are noted. */
  traces?: Traces
  /** The lifetimes of the cache that it asks for, if they were chosen. */
  lifetimes?: LastChoice | undefined
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

/** The folder is tidied up whenever this process has made this many files. */
const MOST_NEW = 100

/** A file is written anew once it has this many times the items of its form. */
const MOST_DEAD = 4

/** The forms of a folder that only this user can read. Without a folder they are only in memory. */
export class Forms {
  readonly #folder: string | undefined
  readonly #run = randomUUID()
  readonly #files = new Map<string, Known>()
  /** Forms that are in no file, by name. */
  readonly #memory = new Map<string, readonly Remembered[]>()
  #made = 0

  /** Tidies the folder up. */
  constructor(folder?: string) {
    this.#folder = folder
    if (folder !== undefined) tidyForms(folder)
  }

  /** The conversations of a name as they are now, the latest last. */
  of(key: string): readonly Remembered[] {
    return [...this.#stored(key), ...(this.#memory.get(key) ?? [])]
  }

  /** The conversations of all names that were used last, the latest last. */
  latest(): readonly Remembered[] {
    const files = this.#folder === undefined ? [] : formFiles(this.#folder).slice(-MOST_OF_ONE)
    return [...files.flatMap(({ name, state }) => this.#read(undefined, name, state).remembered ?? []), ...[...this.#memory.values()].flat()]
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
   * Notes the form of a request that is about to leave. `leaves`: the user went back, so that the form before it may continue as
   * another conversation. Throws the system's error if it can't be written; a later process
   * then takes the form from the record, which costs it the provider's cache at most.
   */
  note(key: string, named: Named, form: LastForm, leaves = false): void {
    const before = this.#current(key, named.id)
    const isBack = leaves && before !== undefined
    const left = [...(before?.left ?? []), ...(isBack ? [before.form] : [])].slice(-MOST_BESIDE)
    const remembered = { ...named, form: inMemory(form), left, branches: before?.branches ?? [] }
    const others = this.#remember(key, remembered)
    if (!this.#write(key, named, form, remembered, isBack)) return
    if (others.length === 0) this.#memory.delete(key)
    else this.#memory.set(key, others)
  }

  /**
   * Notes the branches of a conversation of which one request each is known. Where its file has been erased or another process has just gone on with it,
   * there is nothing to add to. Throws as {@link note}.
   */
  noteBranches(key: string, id: string, branches: readonly BranchMark[]): void {
    const before = this.#current(key, id)
    if (before === undefined) return
    const remembered = { ...before, branches: branches.slice(-MOST_BESIDE) }
    const name = formFile(key, id)
    const { state, own } = this.#files.get(name) ?? {}
    if (this.#folder === undefined || state === undefined) return void this.#remember(key, remembered)
    const after = appended(join(this.#folder, name), state, { branches: remembered.branches })
    if (after !== undefined) this.#know(name, { state: after, remembered, ...(own === undefined ? {} : { own }) })
  }

  /** A conversation as it is now; undefined if it was erased or never noted. */
  #current(key: string, id: string): Remembered | undefined {
    const inMemory = (this.#memory.get(key) ?? []).find((one) => one.id === id)
    if (this.#folder === undefined || inMemory !== undefined) return inMemory
    const name = formFile(key, id)
    const path = join(this.#folder, name)
    const stat = statOf(path)
    if (stat === undefined) return undefined
    return this.#read(key, name, stateOf(stat)).remembered
  }

  #read(key: string | undefined, name: string, state: string): Known {
    const known = this.#files.get(name)
    return known?.state === state ? known : this.#know(name, { state, remembered: readForm(join(this.#folder as string, name), key) })
  }

  /** Keeps it in memory. Returns the others there. */
  #remember(key: string, remembered: Remembered): readonly Remembered[] {
    const others = (this.#memory.get(key) ?? []).filter(({ id }) => id !== remembered.id)
    this.#memory.set(key, [...others.slice(1 - MOST_OF_ONE), remembered])
    dropFirst(this.#memory)
    return others
  }

  #stored(key: string): Remembered[] {
    const folder = this.#folder
    if (folder === undefined) return []
    return formFiles(folder, key)
      .slice(-MOST_OF_ONE)
      .flatMap(({ name, state }) => this.#read(key, name, state).remembered ?? [])
  }

  #know(name: string, known: Known): Known {
    this.#files.delete(name)
    this.#files.set(name, known)
    dropFirst(this.#files)
    return known
  }

  /** Returns false if the form has to stay in memory. */
  #write(key: string, named: Named, form: LastForm, remembered: Remembered, leaves: boolean): boolean {
    const name = formFile(key, named.id)
    if (this.#folder === undefined) return false
    const path = join(this.#folder, name)
    const { own, state } = this.#files.get(name) ?? {}
    if (own !== undefined) {
      const linked = sameLinks(own.form.chain, form.chain)
      const kept = sameItems(own.form, form, linked)
      const count = own.count + form.items.length - kept
      const line = { ...this.#line(form, kept, linked), ...(leaves ? { leaves } : {}) }
      const after = count > MOST_DEAD * form.items.length + 100 ? undefined : appended(path, state as string, line)
      if (after !== undefined) {
        this.#know(name, { state: after, remembered, own: { form, count } })
        return true
      }
    }
    this.#files.delete(name)
    const { left, branches } = remembered
    const before = left.map((one): Line => ({ run: this.#run, kept: 0, linked: 0, ...one.line() }))
    const lines: (Line | BesideLine)[] = linked([...before, this.#line(form, 0, 0)])
    if (branches.length > 0) lines.push({ branches })
    writePrivateFile(path, [headOf(key, named), ...lines.map((line) => JSON.stringify(line)), ''].join('\n'))
    const count = before.reduce((sum, { items }) => sum + items.length, form.items.length)
    this.#know(name, { state: stateOf(statSync(path)), remembered, own: { form, count } })
    if (state === undefined) {
      this.#made += 1
      if (this.#made % MOST_NEW === 0) tidyForms(this.#folder)
    }
    return true
  }

  #line(form: LastForm, kept: number, linked: number): Line {
    return { run: this.#run, kept, linked, ...lineOf(form, kept, linked) }
  }
}

/** A form of this process, as those of others. */
export function inMemory(form: LastForm): StoredForm {
  const { chain, items, atMs, wasEdited, said = [], traces, lifetimes } = form
  const count = chain.length - 1
  const links = chain.map(linkOf)
  return { links, atMs, wasEdited, said, traces, lifetimes, line: () => lineOf(form), open: (_, length) => beginningOf(items, count, length) }
}

/** A form as a line: its items from one on, and the same for its links and traces. */
function lineOf({ chain, items, atMs, wasEdited, said, traces, lifetimes }: LastForm, kept = 0, linked = 0): WholeLine {
  const marks = said === undefined ? {} : { said }
  const own = { ...(traces !== undefined && { traces: traces.slice(linked) }), ...(lifetimes !== undefined && { lifetimes }) }
  return { atMs, wasEdited, ...marks, ...own, items: sealed(items, kept, chain), links: chain.slice(linked).map(linkOf) }
}

/** Forms behind each other, each of which was left for the next one, in terms of the one before. */
function linked(lines: readonly Line[]): Line[] {
  return lines.map((line, n) => {
    const before = lines[n - 1]
    if (before === undefined) return line
    const common = commonLength(before.links, line.links)
    // A line that builds on nothing has no traces before it.
    const isBuilt = common > 0 && (before.traces === undefined) === (line.traces === undefined)
    if (!isBuilt) return { ...line, leaves: true }
    return {
      ...line,
      linked: common,
      links: line.links.slice(common),
      ...(line.traces === undefined ? {} : { traces: line.traces.slice(common) }),
      leaves: true,
    }
  })
}

/** The number of items that two forms have in common, also on disk: what is sealed there is sealed with the messages up to it, of which `linked` links are the same. */
function sameItems(one: LastForm, other: LastForm, linked: number): number {
  const [before, after] = [one, other].map(({ items, chain }) => nextsOf(items, chain.length - 1)) as [number[], number[]]
  const isSame = (item: EditedItem | undefined, n: number): boolean => {
    const key = (after[n] as number) + (item !== undefined && isEdited(item) ? 1 : 0)
    return typeof item === 'number' || (before[n] === after[n] && key < linked)
  }
  const most = commonLength(one.items, other.items)
  const first = other.items.slice(0, most).findIndex((item, n) => !isSame(item, n))
  return first < 0 ? most : first
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
function appended(path: string, state: string, line: Line | BesideLine): string | undefined {
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
