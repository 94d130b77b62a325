/**
 * Remembers in which form each conversation went out last, so that a gateway that follows one that was killed sends the same
 * bytes again. A form is written before its request leaves. It does not have the host's messages: it says by hashes which
 * ones they were, and what stood in their place.
 */
import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isFields } from '../harness/message.ts'
import { writePrivateFile } from '../private-file.ts'
import type { Item } from '../harness/edit.ts'
import { commonLength } from './prefix.ts'

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
  /** Which messages of the host the request had: entry n stands for the first n of them. */
  chain: readonly string[]
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
  /** The same for the entries of the chain. */
  linked: number
}

/** How many conversations are remembered, in files and by name. The longest unused ones are forgotten. */
const MOST = 500

/** How many of one name: where a host gives no IDs, all its conversations have the same. */
const MOST_OF_ONE = 20

/** A file is written anew once it has this many times the items of its form. */
const MOST_DEAD = 4

/** Larger files are not ours, in bytes. */
const LARGEST = 64 * 1024 * 1024

/** The forms of a folder that only this user can read. Without a folder they are only in memory. */
export class Forms {
  readonly #folder: string | undefined
  readonly #run = randomUUID()
  readonly #memory = new Map<string, readonly Remembered[]>()
  /** How many items the files have that this process writes, by path. */
  readonly #written = new Map<string, number>()

  /** Forgets the longest unused forms of a folder if there are too many. */
  constructor(folder?: string) {
    this.#folder = folder
    if (folder !== undefined) forgetOldest(folder)
  }

  /** The conversations of a name, the latest last. */
  of(key: string): readonly Remembered[] {
    const known = this.#memory.get(key) ?? (this.#folder === undefined ? [] : read(this.#folder, key))
    if (!this.#memory.has(key)) this.#keep(key, known)
    return known
  }

  /**
   * Notes the form of a request that is about to leave. Throws the system's error if it can't be written; a later process
   * then takes the form from the record, which costs it the provider's cache at most.
   */
  note(key: string, named: Named, form: LastForm): void {
    const known = this.of(key)
    const others = known.filter(({ id }) => id !== named.id)
    this.#keep(key, [...others.slice(1 - MOST_OF_ONE), { ...named, form }])
    if (this.#folder === undefined) return
    const path = join(this.#folder, fileName(key, named.id))
    const written = this.#written.get(path)
    const before = written === undefined ? undefined : known.find(({ id }) => id === named.id)?.form
    this.#written.delete(path)
    const [kept, linked] = [commonLength(before?.items ?? [], form.items), commonLength(before?.chain ?? [], form.chain)]
    const count = (written ?? 0) + form.items.length - kept
    const isLong = count > MOST_DEAD * form.items.length + 100
    if (before !== undefined && !isLong && appended(path, { ...form, run: this.#run, kept, linked, items: form.items.slice(kept), chain: form.chain.slice(linked) })) {
      this.#written.set(path, count)
    } else {
      const line: Line = { ...form, run: this.#run, kept: 0, linked: 0 }
      writePrivateFile(path, `${JSON.stringify({ version: 2, key, ...named })}\n${JSON.stringify(line)}\n`)
      this.#written.set(path, form.items.length)
    }
    dropFirst(this.#written)
  }

  #keep(key: string, all: readonly Remembered[]): void {
    this.#memory.delete(key)
    this.#memory.set(key, all)
    dropFirst(this.#memory)
  }
}

/** Leaves the last entries of a map, as many as are remembered. */
function dropFirst(map: Map<string, unknown>): void {
  for (const key of [...map.keys()].slice(0, Math.max(0, map.size - MOST))) map.delete(key)
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
    const files = names.map((name) => ({ name, stat: statSync(join(folder, name)) })).filter(({ stat }) => stat.isFile() && stat.size < LARGEST)
    return files.map(({ name, stat }) => ({ name, atMs: stat.mtimeMs })).toSorted((one, other) => one.atMs - other.atMs)
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
    if (!isFields(head) || head['version'] !== 2 || head['key'] !== key) return undefined
    const runs = new Map<string, LastForm>()
    let last: LastForm | undefined
    for (const line of lines as (Line | undefined)[]) {
      if (line === undefined) continue
      const before = line.kept === 0 && line.linked === 0 ? NOTHING : runs.get(line.run)
      last = before === undefined ? undefined : joined(before, line)
      if (last !== undefined) runs.set(line.run, last)
    }
    const before = head['before'] as string | undefined
    return last && { id: head['id'] as string, cwd: head['cwd'] as string, ...(before === undefined ? {} : { before }), form: last }
  } catch {
    return undefined
  }
}

const NOTHING: LastForm = { chain: [], items: [], atMs: 0, wasEdited: false }

/** The form of a line behind another one; undefined if somebody has damaged it. */
function joined(before: LastForm, { kept, linked, items, chain, atMs, wasEdited }: Line): LastForm | undefined {
  const [all, links] = [[...before.items.slice(0, kept), ...items], [...before.chain.slice(0, linked), ...chain]]
  const isWhole = kept >= 0 && linked >= 0 && links.every((link) => typeof link === 'string')
  return isWhole && all.every((item) => isItem(item, links.length - 1)) ? { chain: links, items: all, atMs, wasEdited } : undefined
}

function isItem(item: unknown, count: number): boolean {
  const place = Array.isArray(item) ? item[0] : item
  if (typeof place === 'number') return Number.isInteger(place) && place >= 0 && place < count && (item === place || isFields((item as unknown[])[1]))
  return isFields(item) && isFields(item['add'])
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
