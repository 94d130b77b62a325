/** Calls under the engine's names, and back. The recognizer says which names differ; here they are put into the arguments. */
import { fieldOf, isFields, sharedAddon } from '../core/index.ts'
import type { Fields } from '../core/index.ts'

/** A call under the host's names. */
export interface HostCall {
  name: string
  args: Fields
}

/** A call under the engine's names. */
export interface EngineCall {
  /** `read`, `write`, `edit`, `bash`, `grep`, `find` or `ls`; the host's own name for every other tool. */
  tool: string
  /** The arguments under the engine's names: `path`, `content`, `oldText`, `newText`, `command`. */
  args: Fields
  /** The file that the tool shows, as the host wrote its path. */
  reads?: string
  /** The files that the tool changes, as the host wrote their paths. */
  writes?: readonly string[]
  /** The lines of a file that a shell shows, for agents that read files through it. */
  shows?: ShownLines
}

/** Lines of a file, as a shell command shows them. */
export interface ShownLines {
  /** The file, as the command writes its path. */
  path: string
  /** The first line, counted from 1. */
  first: number
  /** The last line; null for the end of the file. */
  last: number | null
  /** True if the command puts its number before each line. */
  numbered: boolean
}

/** The names that a host has for arguments, with the engine's. */
type Names = Readonly<Record<string, string>>

/** The answer of the recognizer: src/tools.rs says what each field is. */
interface Recognized {
  tool: string
  names?: Names
  items?: { field: string; names: Names }
  command?: string
  isScript?: boolean
  reads?: string
  writes?: string[]
  shows?: ShownLines
}

/** Calls of a host under the engine's names, all of a message at once. A tool that the engine does not know keeps its name and arguments. */
export function engineCalls(calls: readonly HostCall[]): EngineCall[] {
  return recognized(calls).map((one, at) => translated(calls[at] as HostCall, one))
}

/** A call of a host under the engine's names. */
export function engineCall(name: string, args: Fields): EngineCall {
  return engineCalls([{ name, args }])[0] as EngineCall
}

/**
 * The host's arguments for `edited`, which are the engine's arguments of the same call with some values replaced. A value
 * that was not replaced stays as the host has it. Paths stay as well: some hosts accept only absolute ones.
 */
export function hostArguments(name: string, args: Fields, edited: Fields): Fields {
  const call = { name, args }
  const [known] = recognized([call])
  if (known === null || known === undefined) return edited
  const { names = {}, items } = known
  const back = (own: Fields, was: Fields, now: Fields, names: Names): Fields =>
    Object.fromEntries(
      Object.entries(own).map(([field, value]) => {
        const engine = fieldOf(names, field) ?? field
        const [before, after] = [fieldOf(was, engine), fieldOf(now, engine)]
        if (engine === 'path' || after === undefined || after === before) return [field, value]
        if (field === items?.field && Array.isArray(value)) {
          const [olds, news] = [before as Fields[], after as Fields[]]
          return [field, value.map((one: Fields, index) => back(one, olds[index] ?? {}, news[index] ?? {}, items.names))]
        }
        return [field, Array.isArray(value) && typeof after === 'string' ? [...value.slice(0, -1), after] : after]
      }),
    )
  return back(args, translated(call, known).args, edited, names)
}

/** A call with the names and the form of Pi's own tools: an edit has a list of replacements. */
export function piCall(name: string, args: Fields): [tool: string, args: Fields] {
  const call = engineCall(name, args)
  const { path, oldText, newText, ...rest } = call.args
  if (call.tool !== 'edit' || 'edits' in rest) return [call.tool || 'unknown', call.args]
  return ['edit', { path, edits: [{ oldText, newText }], ...rest }]
}

function recognized(calls: readonly HostCall[]): (Recognized | null)[] {
  if (calls.length === 0) return []
  const texts = calls.map(({ name, args }) => [name, textsIn(args)])
  return JSON.parse(sharedAddon().recognizeCalls(JSON.stringify(texts))) as (Recognized | null)[]
}

/** The texts, numbers and lists of these among arguments; nothing else in them says what a call touches. */
function textsIn(args: Fields): Fields {
  const text = (value: unknown): unknown => (typeof value === 'string' || typeof value === 'number' ? value : null)
  return Object.fromEntries(Object.entries(isFields(args) ? args : {}).map(([field, value]) => [field, Array.isArray(value) ? value.map(text) : text(value)]))
}

function translated({ name, args }: HostCall, one: Recognized | null): EngineCall {
  if (one === null) return { tool: name, args }
  const { tool, names = {}, items, command, isScript = false, ...files } = one
  const own = isScript ? {} : renamed(args, names)
  if (items !== undefined) own[items.field] = (own[items.field] as unknown[]).map((item) => (isFields(item) ? renamed(item, items.names) : item))
  if (command !== undefined) own['command'] = command
  return { tool, args: own, ...files }
}

/** Renames fields, unless the name that they would get is taken. */
function renamed(fields: Fields, names: Names): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const engine = fieldOf(names, field)
      return [engine === undefined || engine in fields ? field : engine, value]
    }),
  )
}
