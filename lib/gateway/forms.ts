/**
 * Remembers in which form each conversation went out last, so that a gateway that follows one that was killed sends the same
 * bytes again. A form is written before its request leaves. It does not have the host's messages: it says by a hash which
 * ones they were, and what stood in their place.
 */
import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isFields } from '../harness/message.ts'
import { writePrivateFile } from '../private-file.ts'
import type { Item } from '../harness/edit.ts'

/** The folder of the forms beside a store. */
export const FORMS_FOLDER = 'gateway-forms'

/** Which conversation a form is of. */
export interface Named {
  id: string
  cwd: string
  /** The session that it goes on from. */
  before?: string | undefined
}

/** How a conversation went out last. */
export interface LastForm {
  /** How many messages of the host the request had. */
  count: number
  /** The hash of these messages. */
  hash: string
  /** When it went out, in milliseconds since the epoch. */
  atMs: number
  /** What went out instead of them. */
  items: readonly Item[]
  /** True once anything in the conversation has been edited. */
  wasEdited: boolean
}

/** A conversation and its last form. */
export interface Remembered extends Named {
  form: LastForm
}

/** A line of a file: a form in terms of the one before it. */
interface Line extends LastForm {
  /** The process that wrote it. Its first line does not build on another one. */
  run: string
  /** How many items of the line before are the first ones of this form. */
  kept: number
}

/** How many conversations are remembered, in files and by name. The longest unused ones are forgotten. */
const MOST = 500

/** How many of one name: where a host gives no IDs, all its conversations have the same. */
const MOST_OF_ONE = 20

/** A file is written anew once it has this many times the items of its form. */
const MOST_DEAD = 4

/** The state of a file that this process writes. */
interface Written {
  items: readonly Item[]
  count: number
}

/** The forms of a folder that only this user can read. Without a folder they are only in memory. */
export class Forms {
  readonly #folder: string | undefined
  readonly #run = randomUUID()
  readonly #memory = new Map<string, Map<string, Remembered>>()
  readonly #written = new Map<string, Written>()

  /** Forgets the longest unused forms of a folder if there are too many. */
  constructor(folder?: string) {
    this.#folder = folder
    if (folder !== undefined) forgetOldest(folder)
  }

  /** The conversations of a name, the latest last. */
  of(key: string): readonly Remembered[] {
    const known = this.#memory.get(key)
    if (known !== undefined) return [...known.values()]
    const found = this.#folder === undefined ? [] : read(this.#folder, key)
    this.#keep(key, found)
    return found
  }

  /**
   * Notes the form of a request that is about to leave. Throws the system's error if it can't be written; a later process
   * then takes the form from the record, which costs it the provider's cache at most.
   */
  note(key: string, named: Named, form: LastForm): void {
    const others = this.of(key).filter(({ id }) => id !== named.id)
    this.#keep(key, [...others.slice(1 - MOST_OF_ONE), { ...named, form }])
    if (this.#folder === undefined) return
    const path = join(this.#folder, fileName(key, named.id))
    const before = this.#written.get(path)
    this.#written.delete(path)
    const kept = before === undefined ? 0 : commonItems(before.items, form.items)
    const count = (before?.count ?? 0) + form.items.length - kept
    const isLong = count > MOST_DEAD * form.items.length + 100
    if (before !== undefined && !isLong && appended(path, { ...form, run: this.#run, kept, items: form.items.slice(kept) })) {
      this.#written.set(path, { items: form.items, count })
    } else {
      const line: Line = { ...form, run: this.#run, kept: 0 }
      writePrivateFile(path, `${JSON.stringify({ version: 1, key, ...named })}\n${JSON.stringify(line)}\n`)
      this.#written.set(path, { items: form.items, count: form.items.length })
    }
    for (const longest of [...this.#written.keys()].slice(0, Math.max(0, this.#written.size - MOST))) this.#written.delete(longest)
  }

  #keep(key: string, all: readonly Remembered[]): void {
    this.#memory.delete(key)
    this.#memory.set(key, new Map(all.map((one) => [one.id, one])))
    for (const longest of [...this.#memory.keys()].slice(0, Math.max(0, this.#memory.size - MOST))) this.#memory.delete(longest)
  }
}

/** Forgets all forms beside a store: what is erased from the store must not stay in them. */
export function forgetForms(folder: string): void {
  rmSync(join(folder, FORMS_FOLDER), { recursive: true, force: true })
}

/** Appends a line to a file that is there. Returns false if it has been erased meanwhile, as by `forget`. */
function appended(path: string, line: Line): boolean {
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_APPEND)
    try {
      writeSync(file, `${JSON.stringify(line)}\n`)
    } finally {
      closeSync(file)
    }
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function commonItems(one: readonly Item[], other: readonly Item[]): number {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && (one[at] === other[at] || JSON.stringify(one[at]) === JSON.stringify(other[at]))) at += 1
  return at
}

function fileName(key: string, id: string): string {
  return `${short(key)}-${short(id)}.jsonl`
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}

function read(folder: string, key: string): Remembered[] {
  const found = filesIn(folder).filter(({ name }) => name.startsWith(`${short(key)}-`)).slice(-MOST_OF_ONE)
  return found.flatMap(({ name }) => remembered(join(folder, name), key) ?? [])
}

/** The files of a folder, the latest last. */
function filesIn(folder: string): { name: string; atMs: number }[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
    return names.map((name) => ({ name, atMs: statSync(join(folder, name)).mtimeMs })).toSorted((one, other) => one.atMs - other.atMs)
  } catch {
    return []
  }
}

function forgetOldest(folder: string): void {
  const files = filesIn(folder)
  for (const { name } of files.slice(0, Math.max(0, files.length - MOST))) rmSync(join(folder, name), { force: true })
}

/** The last form in a file. A line may be torn at the end, and a line of another gateway may stand between two of one. */
function remembered(path: string, key: string): Remembered | undefined {
  try {
    const [head, ...lines] = readFileSync(path, 'utf8').split('\n').map(parsed)
    if (!isFields(head) || head['version'] !== 1 || head['key'] !== key) return undefined
    const runs = new Map<string, readonly Item[]>()
    let last: Line | undefined
    for (const line of lines as (Line | undefined)[]) {
      if (line === undefined) continue
      const before = line.kept === 0 ? [] : runs.get(line.run)
      last = before === undefined ? undefined : { ...line, items: [...before.slice(0, line.kept), ...line.items] }
      if (last !== undefined) runs.set(line.run, last.items)
    }
    if (last === undefined) return undefined
    const { count, hash, atMs, items, wasEdited } = last
    const before = head['before'] as string | undefined
    return { id: head['id'] as string, cwd: head['cwd'] as string, ...(before === undefined ? {} : { before }), form: { count, hash, atMs, items, wasEdited } }
  } catch {
    return undefined
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
