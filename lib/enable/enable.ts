/** The changes in the user's files that start an agent through the gateway. */
import { existsSync, readFileSync } from 'node:fs'
import { backUp, dropBackups, readForEdit, replaceText, Untouched } from './edited-file.ts'
import type { FileBefore } from './edited-file.ts'
import { dropFolders, makeFolders } from './folders.ts'
import { claudeSettings, statusLineIn, withoutStatusLine, withStatusLine } from './settings.ts'
import { functionLines, hasFunctions, ownDefinition, placeOf, placesOf, withFunction, withoutFunction } from './shells.ts'
import type { Environment } from '../core/index.ts'
import { reasonOf } from '../ui/index.ts'
import type { ShellName } from './shells.ts'

/** The commands of agents that can be enabled. */
export const COMMANDS = ['claude', 'cline', 'codex', 'copilot', 'gemini', 'kilo', 'opencode', 'qwen'] as const

/** One of them. */
export type EnabledCommand = (typeof COMMANDS)[number]

/** A part of what enables a command, in one file. */
export type CommandPart = 'function' | 'status line'

/** A change of one file. */
export interface Change {
  path: string
  part: CommandPart
  /** The lines that are added, for the user; empty if some are taken away. */
  lines: string
  /** Makes the change. Returns the path of the copy of the file as it was, if one was made. Throws {@link Untouched}. */
  apply(): string | undefined
}

/** A file that stays as it is, and a sentence that says why. */
export interface Refusal {
  path: string
  part: CommandPart
  why: string
  /** The lines that the user can add without us. */
  lines: string
  /** The file has something of ours. */
  isOurs: boolean
}

/** The changes that a command needs. */
export interface Plan {
  changes: Change[]
  refusals: Refusal[]
  /** Files in which there is nothing to do. */
  done: string[]
  /** Files that have a status line of the user's own, which stays. */
  own: string[]
}

/** Returns what enables a command in a shell. Nothing is changed yet. */
export function planEnable(command: EnabledCommand, shell: ShellName, env: Environment): Plan {
  const plan: Plan = { changes: [], refusals: [], done: [], own: [] }
  const place = placeOf(shell, command, env)
  const lines = functionLines(shell, command)
  planned({ plan, command }, place.file, 'function', lines, (file) => {
    const text = file.text ?? ''
    const there = withoutFunction(text, command)
    if (there?.isChanged === true)
      throw new Untouched(`its lines between ">>> pi-context-manager enable ${command} >>>" and "<<<" have been changed; remove them first`)
    if (there !== undefined) return undefined
    const own = ownDefinition(text, command)
    if (own !== undefined)
      throw new Untouched(
        `it has ${own} ${command}, which starts the agent without the gateway; change that to start "pi-context-manager run -- ...", or remove it`,
      )
    return () => added(file, withFunction(text, place, command))
  })
  if (command === 'claude') {
    planned({ plan, command }, claudeSettings(env), 'status line', '', (file) => {
      const there = file.text === undefined ? undefined : statusLineIn(file.text)
      if (there === 'own') plan.own.push(file.path)
      if (there !== undefined) return undefined
      const next = withStatusLine(file.text)
      return { lines: STATUS_LINES, apply: () => added(file, next) }
    })
  }
  return plan
}

const STATUS_LINES = '"statusLine": {"type":"command","command":"pi-context-manager status-line"}\n'

/** Returns what disables a command, in all shells. Nothing is changed yet. */
export function planDisable(command: EnabledCommand, env: Environment): Plan {
  const plan: Plan = { changes: [], refusals: [], done: [], own: [] }
  for (const place of placesOf(command, env)) {
    planned({ plan, command }, place.file, 'function', '', (file) => {
      const there = withoutFunction(file.text ?? '', command)
      if (there === undefined) return undefined
      if (there.isChanged)
        throw new Untouched(`its lines between ">>> pi-context-manager enable ${command} >>>" and "<<<" have been changed; remove them yourself`)
      return () => taken(file, there.text === '' ? undefined : there.text)
    })
  }
  if (command === 'claude') {
    planned({ plan, command }, claudeSettings(env), 'status line', '', (file) => {
      if (file.text === undefined || statusLineIn(file.text) !== 'ours') return undefined
      const next = withoutStatusLine(file.text)
      return () => taken(file, next)
    })
  }
  return plan
}

/** A part of what enables a command, and the file that has it. */
export interface EnabledPart {
  command: EnabledCommand
  path: string
  part: CommandPart
}

/** Everything that is enabled. An unreadable file has nothing of ours. */
export function enabledParts(env: Environment): EnabledPart[] {
  return COMMANDS.flatMap((command) => {
    const { changes, refusals } = planDisable(command, env)
    const found = [...changes, ...refusals.filter(({ isOurs }) => isOurs)]
    return found.map(({ path, part }) => ({ command, path, part }))
  })
}

type Work = (() => string | undefined) | { lines: string; apply: () => string | undefined } | undefined

/** Adds to a plan what one file needs: a change, nothing, or why it stays untouched. */
function planned(
  { plan, command }: { plan: Plan; command: EnabledCommand },
  path: string,
  part: CommandPart,
  lines: string,
  workFor: (file: FileBefore) => Work,
): void {
  try {
    const work = workFor(readForEdit(path))
    if (work === undefined) plan.done.push(path)
    else plan.changes.push({ path, part, ...(typeof work === 'function' ? { lines, apply: work } : work) })
  } catch (error) {
    if (!(error instanceof Untouched)) throw error
    plan.refusals.push({ path, part, why: error.message, lines: part === 'status line' ? STATUS_LINES : lines, isOurs: hasOurs(path, part, command) })
  }
}

function hasOurs(path: string, part: CommandPart, command: EnabledCommand): boolean {
  try {
    const text = readFileSync(path, 'latin1')
    return part === 'function' ? withoutFunction(text, command) !== undefined : statusLineIn(text) === 'ours'
  } catch {
    return false
  }
}

function added(file: FileBefore, text: string): string | undefined {
  if (file.text === undefined) withFolders(() => makeFolders(file.path))
  // With lines of ours in it, it is not as it was before, and the copy is there already.
  const copy = hasFunctions(file.text ?? '') ? undefined : backUp(file)
  replaceText(file, text)
  return copy
}

function taken(file: FileBefore, text: string | undefined): undefined {
  // A file that had nothing before us was not there, unless a copy says that it was.
  replaceText(file, text ?? (hadCopy(file.path) ? '' : undefined))
  dropBackups(file.path, text ?? '')
  if (!existsSync(file.path)) withFolders(() => dropFolders(file.path))
  return undefined
}

function withFolders(work: () => void): void {
  try {
    work()
  } catch (error) {
    throw new Untouched(`its folder can't be made or removed (${reasonOf(error)})`)
  }
}

function hadCopy(path: string): boolean {
  return existsSync(`${path}.before-pi-context-manager`)
}
