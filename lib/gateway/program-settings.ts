/** The start of a program, and the files in which it keeps its own settings. */
import { readFileSync } from 'node:fs'
import { isFields } from '../core/index.ts'
import type { Environment, Fields, HostName } from '../core/index.ts'
import type { Upstreams } from './routes.ts'

/** A running gateway, as far as a program has to know of it. */
export interface Addresses {
  url: string
  mcpUrl: string
  secret: string
}

/** The arguments, environment and files that a program is started with. */
export interface Launch {
  args: string[]
  /** Added to the environment. */
  env: Record<string, string>
  /** Files to write, readable only by the user, and to delete at the end: name and content. */
  files: Record<string, string>
  /** Notes for the user: the program can't be served in full. */
  notes: string[]
}

/** A program to start: its host's name, where its requests went so far, and how it is started with a gateway. */
export interface Program {
  host: HostName
  upstreams: Partial<Upstreams>
  /** `folder` is where the {@link Launch.files} will be. */
  launch(gateway: Addresses, folder: string): Launch
}

/** The place from which a program reads its configuration. */
export interface Place {
  cwd: string
  env: Environment
}

/** The variable in which a program finds the gateway's secret. */
export const SECRET = 'PI_CONTEXT_SECRET'

/** Reads the settings files of one program. Missing files are empty; a note names each that can't be read. */
export class SettingsFiles {
  readonly #notes = new Map<string, string>()

  /** Sentences for the user, one for each file that was taken as empty although it is there. */
  get notes(): string[] {
    return [...this.#notes.values()]
  }

  /** The text of a file. */
  text(file: string): string {
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.#skip(file, `it can't be read (${code})`)
      return ''
    }
  }

  /** The fields of a JSON file, with comments or without. */
  json(file: string): Fields {
    const text = withoutComments(this.text(file))
    try {
      return text.trim() === '' ? {} : fieldsOf(JSON.parse(text))
    } catch {
      this.#skip(file, 'it is not JSON')
      return {}
    }
  }

  #skip(file: string, why: string): void {
    this.#notes.set(file, `the settings in ${file} were not taken into account: ${why}`)
  }
}

/** A text without the comments and last commas that some programs allow in JSON. Strings stay as they are. */
function withoutComments(text: string): string {
  const bare = text.replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g, (_, string: string | undefined) => string ?? ' ')
  return bare.replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? '')
}

/** The fields of a JSON text; none if it is damaged. */
export function parsed(json: string): Fields {
  try {
    return fieldsOf(JSON.parse(json))
  } catch {
    return {}
  }
}

/** A value as fields; none if it is anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

/** The value of an option: the word behind it, or what follows its `=`. */
export function valueOf(args: readonly string[], names: readonly string[]): string | undefined {
  for (const [index, word] of args.entries()) {
    if (word === '--') return undefined
    if (names.includes(word)) return args[index + 1]
    const name = names.find((one) => one.startsWith('--') && word.startsWith(`${one}=`))
    if (name !== undefined) return word.slice(name.length + 1)
  }
  return undefined
}

/** A text value in a table of a TOML file; the table '' is the beginning of the file. */
export function tomlText(toml: string, table: string, name: string): string | undefined {
  let current = ''
  for (const line of toml.split('\n')) {
    const header = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line)?.[1]
    if (header !== undefined) current = header.replaceAll(/["'\s]/g, '')
    const [, key, double, single] = /^\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')/.exec(line) ?? []
    if (current === table && key === name) return single ?? double
  }
  return undefined
}
