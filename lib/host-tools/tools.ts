/**
 * The tools of coding agents: which names they give to tools and arguments, and what the engine calls the same things. The
 * only place that knows them; the gateway, the hosts' entry points and the replay share it.
 */
import { fieldOf, isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { patchedFiles, scriptCommands } from './patches.ts'

/** A call under the engine's names. */
export interface EngineCall {
  /** `read`, `write`, `edit`, `bash`, `grep`, `find` or `ls`; the host's own name for every other tool. */
  tool: string
  /** The arguments under the engine's names: `path`, `content`, `oldText`, `newText`, `command`. */
  args: Fields
  /** The file that the tool shows, as the host wrote its path. */
  reads?: string
  /** The files that the tool has changed, as the host wrote their paths. */
  writes?: readonly string[]
  /** A shell command shows the file: as it is, or with numbers before its lines. */
  shell?: 'plain' | 'numbered'
}

/** A tool of a host: the engine's name for it, and for those of its arguments that are called otherwise. */
interface Tool {
  tool: string
  names?: Readonly<Record<string, string>>
  /** Arguments that are lists of objects, with the names of these objects' fields. */
  lists?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const PATH = { file_path: 'path', filePath: 'path', filepath: 'path', absolute_path: 'path', target_file: 'path' }
const FOLDER = { dir_path: 'path', dirpath: 'path', directory: 'path', ...PATH }
const EDIT = { old_string: 'oldText', oldString: 'oldText', old_str: 'oldText', new_string: 'newText', newString: 'newText', new_str: 'newText', replaceAll: 'replace_all' }
const COMMAND = { cmd: 'command' }

const READ: Tool = { tool: 'read', names: PATH }
const WRITE: Tool = { tool: 'write', names: { ...PATH, file_text: 'content', contents: 'content' } }
const EDITS: Tool = { tool: 'edit', names: { ...PATH, ...EDIT }, lists: { edits: EDIT } }
const BASH: Tool = { tool: 'bash', names: COMMAND }
const GREP: Tool = { tool: 'grep', names: FOLDER }
const FIND: Tool = { tool: 'find', names: FOLDER }
const LIST: Tool = { tool: 'ls', names: FOLDER }

/** Tools by the hosts' names. Unlisted agents often use these names. */
const TOOLS: ReadonlyMap<string, Tool> = new Map([
  // Claude Code
  ...named(['Read'], READ),
  ...named(['Write'], WRITE),
  ...named(['Edit', 'MultiEdit'], EDITS),
  ...named(['Bash'], BASH),
  ...named(['Grep'], GREP),
  ...named(['Glob'], FIND),
  ...named(['LS'], LIST),
  // Codex
  ...named(['shell', 'shell_command', 'exec_command', 'container.exec', 'local_shell'], BASH),
  ...named(['read_file'], READ),
  ...named(['grep_files'], GREP),
  ...named(['list_dir'], LIST),
  // OpenCode, and Pi
  ...named(['read'], READ),
  ...named(['write'], WRITE),
  ...named(['edit', 'multiedit'], EDITS),
  ...named(['bash'], BASH),
  ...named(['grep'], GREP),
  ...named(['glob', 'find'], FIND),
  ...named(['list', 'ls'], LIST),
  // Gemini CLI and Qwen Code
  ...named(['write_file'], WRITE),
  ...named(['replace'], EDITS),
  ...named(['run_shell_command'], BASH),
  ...named(['grep_search', 'search_file_content'], GREP),
  ...named(['list_directory'], LIST),
  // The Copilot CLI
  ...named(['view'], READ),
  ...named(['create'], WRITE),
  // Cline and its relatives
  ...named(['write_to_file'], WRITE),
  ...named(['execute_command'], BASH),
  ...named(['search_files'], GREP),
  ...named(['list_files'], LIST),
  ...named(['editor'], { tool: 'edit', names: { old_text: 'oldText', new_text: 'newText' } }),
])

/** A tool of a host. Cline's takes a list of commands; one alone is what others call a command. */
function toolOf(name: string, args: Fields): Tool | undefined {
  const { commands } = args
  return name === 'run_commands' && Array.isArray(commands) && commands.length === 1 ? { tool: 'bash', names: { commands: 'command' } } : TOOLS.get(name)
}

function named(names: readonly string[], tool: Tool): [string, Tool][] {
  return names.map((name) => [name, tool])
}

/** Tools whose argument is a patch, or a script that may have one. */
const PATCHES: ReadonlySet<string> = new Set(['apply_patch', 'exec'])

/** A call of a host under the engine's names. A tool that the engine does not know keeps its name and arguments. */
export function engineCall(name: string, args: Fields): EngineCall {
  if (PATCHES.has(name)) return patchCall(name, args)
  const known = toolOf(name, args)
  if (known === undefined) return { tool: name, args }
  const own = renamed(args, known)
  if (known.tool === 'bash') own['command'] = commandOf(own['command'])
  const path = typeof own['path'] === 'string' && own['path'] !== '' ? own['path'] : undefined
  const call: EngineCall = { tool: known.tool, args: own }
  if (path === undefined) return call
  if (known.tool === 'read') return { ...call, reads: path }
  return known.tool === 'write' || known.tool === 'edit' ? { ...call, writes: [path] } : call
}

/**
 * The host's arguments for `edited`, which are the engine's arguments of the same call with some values replaced. A value
 * that was not replaced stays as the host has it. Paths stay as well: some hosts accept only absolute ones.
 */
export function hostArguments(name: string, args: Fields, edited: Fields): Fields {
  const known = toolOf(name, args)
  if (known === undefined) return edited
  const given = engineCall(name, args).args
  const back = (own: Fields, was: Fields, now: Fields, names: Readonly<Record<string, string>>): Fields =>
    Object.fromEntries(
      Object.entries(own).map(([field, value]) => {
        const engine = fieldOf(names, field) ?? field
        const [before, after] = [fieldOf(was, engine), fieldOf(now, engine)]
        if (engine === 'path' || after === undefined || after === before) return [field, value]
        const list = fieldOf(known.lists ?? {}, field)
        if (list !== undefined && Array.isArray(value)) {
          const [olds, news] = [before as Fields[], after as Fields[]]
          return [field, value.map((one: Fields, index) => back(one, olds[index] ?? {}, news[index] ?? {}, list))]
        }
        return [field, Array.isArray(value) && typeof after === 'string' ? [...value.slice(0, -1), after] : after]
      }),
    )
  return back(args, given, edited, known.names ?? {})
}

/** A call with the names and the form of Pi's own tools: an edit has a list of replacements. */
export function piCall(name: string, args: Fields): [tool: string, args: Fields] {
  const call = engineCall(name, args)
  const { path, oldText, newText, ...rest } = call.args
  if (call.tool !== 'edit' || 'edits' in rest) return [call.tool, call.args]
  return ['edit', { path, edits: [{ oldText, newText }], ...rest }]
}

/** Renames fields, unless the name that they would get is taken. */
function renamed(fields: Fields, { names = {}, lists = {} }: Tool): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const list = fieldOf(lists, field)
      const own = list === undefined || !Array.isArray(value) ? value : value.map((one: unknown) => (isFields(one) ? renamed(one, { tool: '', names: list }) : one))
      const engine = fieldOf(names, field)
      return [engine === undefined || engine in fields ? field : engine, own]
    }),
  )
}

/** A command as one line; for `["bash", "-lc", script]`, the script. */
function commandOf(command: unknown): unknown {
  if (!Array.isArray(command)) return command
  return /^(?:.*\/)?(?:ba|z|da)?sh$/.test(String(command[0])) && command.length === 3 ? String(command[2]) : command.join(' ')
}

/** Codex: a patch, or a script that calls other tools. */
function patchCall(name: string, args: Fields): EngineCall {
  const text = typeof args['input'] === 'string' ? args['input'] : ''
  const writes = patchedFiles(text)
  const commands = name === 'exec' ? scriptCommands(text) : []
  const own = commands.length === 0 ? { tool: name, args } : { tool: 'bash', args: { command: commands.join('\n') } }
  return writes.length === 0 ? own : { ...own, writes }
}
