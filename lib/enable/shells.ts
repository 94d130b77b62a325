/** The function by which a shell starts an agent through the gateway: for which shells, in which file, in which words. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import type { Environment } from '../core/index.ts'

/** A shell whose functions are known. */
export type ShellName = 'bash' | 'zsh' | 'fish'

/** A file in which a shell reads the function of one command. */
export interface ShellPlace {
  shell: ShellName
  file: string
}

/** The user's shell; undefined if its functions are not known here. */
export function shellOf(env: Environment): ShellName | undefined {
  const name = basename(env['SHELL'] ?? '')
  return name === 'bash' || name === 'zsh' || name === 'fish' ? name : undefined
}

/** The file in which a shell reads the function of a command when a terminal opens. */
export function placeOf(shell: ShellName, command: string, env: Environment): ShellPlace {
  const home = env['HOME'] ?? homedir()
  const own = (name: string, usual: string): string => (isAbsolute(env[name] ?? '') ? (env[name] as string) : usual)
  if (shell === 'fish') return { shell, file: join(own('XDG_CONFIG_HOME', join(home, '.config')), 'fish', 'conf.d', `pi-context-manager-${command}.fish`) }
  if (shell === 'zsh') return { shell, file: join(own('ZDOTDIR', home), '.zshrc') }
  // A terminal of macOS starts a login shell, which reads .bashrc only where .bash_profile says so.
  const login = join(home, '.bash_profile')
  return { shell, file: process.platform === 'darwin' && existsSync(login) ? login : join(home, '.bashrc') }
}

/** All files in which the function of a command may be. */
export function placesOf(command: string, env: Environment): ShellPlace[] {
  const home = env['HOME'] ?? homedir()
  const all = (['bash', 'zsh', 'fish'] as const).map((shell) => placeOf(shell, command, env))
  const more = ['.bashrc', '.bash_profile'].map((name): ShellPlace => ({ shell: 'bash', file: join(home, name) }))
  return [...new Map([...all, ...more].map((place) => [place.file, place])).values()]
}

/** The lines that make a function for a command, each with its line break. */
export function functionLines(shell: ShellName, command: string): string {
  const name = `pi-context-manager enable ${command}`
  const body = shell === 'fish' ? fishFunction(command) : shellFunction(command)
  return [`# >>> ${name} >>>`, `# "pi-context-manager disable ${command}" removes these lines.`, ...body, `# <<< ${name} <<<`]
    .map((line) => `${line}\n`)
    .join('')
}

/** `function NAME` is not expanded by an alias; without the program, the agent runs as it would. */
function shellFunction(command: string): string[] {
  return [
    `function ${command} {`,
    '  if command -v pi-context-manager >/dev/null 2>&1; then',
    `    command pi-context-manager run -- ${command} "$@"`,
    '  else',
    `    command ${command} "$@"`,
    '  fi',
    '}',
  ]
}

function fishFunction(command: string): string[] {
  return [
    `function ${command} --wraps ${command}`,
    '    if command -q pi-context-manager',
    `        command pi-context-manager run -- ${command} $argv`,
    '    else',
    `        command ${command} $argv`,
    '    end',
    'end',
  ]
}

/** Returns which definition of the user's own stands against a function: `an alias`, `a function`; undefined if there is none. */
export function ownDefinition(text: string, command: string): string | undefined {
  const rest = withoutFunction(text, command)?.text ?? text
  if (new RegExp(`^[ \\t]*(?:builtin[ \\t]+)?alias[ \\t]+(?:-\\S+[ \\t]+)*(?:[^\\n#]*[ \\t])?['"]?${command}['"]?[= \\t]`, 'm').test(rest)) return 'an alias'
  return new RegExp(`^[ \\t]*(?:function[ \\t]+${command}\\b|${command}[ \\t]*\\(\\))`, 'm').test(rest) ? 'a function' : undefined
}

/** A text with the function's lines at its end. {@link withoutFunction} removes the added lines byte for byte. */
export function withFunction(text: string, { shell }: ShellPlace, command: string): string {
  const lines = functionLines(shell, command)
  return text === '' || text.endsWith('\n') ? text + lines : `${text}\n${lines.replace('\n', `${JOINED}\n`)}`
}

/** True if a text begins with lines of ours. */
function isOurs(text: string): boolean {
  return text.startsWith('# >>> pi-context-manager enable ')
}

/** True if a text has lines of ours, for any command. */
export function hasFunctions(text: string): boolean {
  return text.includes('# >>> pi-context-manager enable ')
}

/** Stands in the first line if a line break had to be added before it. */
const JOINED = ' (with the line break before)'

/**
 * A text without the function's lines; undefined if it has none. `isChanged`: they are not as they were written, so that they can't be
 * taken away.
 */
export function withoutFunction(text: string, command: string): { text: string; isChanged: boolean } | undefined {
  for (const shell of ['bash', 'fish'] as const) {
    const lines = functionLines(shell, command)
    for (const [written, isJoined] of [
      [lines, false],
      [lines.replace('\n', `${JOINED}\n`), true],
    ] as const) {
      const at = text.indexOf(written)
      if (at < 0 || (at > 0 && text[at - 1] !== '\n')) continue
      const after = text.slice(at + written.length)
      // The user's text behind it keeps its own line, and other lines of ours remember the line break.
      if (isJoined && isOurs(after)) return { text: text.slice(0, at) + after.replace('\n', `${JOINED}\n`), isChanged: false }
      const before = isJoined && after === '' && at > 0 ? text.slice(0, at - 1) : text.slice(0, at)
      return { text: before + after, isChanged: false }
    }
  }
  return text.includes(`>>> pi-context-manager enable ${command} >>>`) ? { text, isChanged: true } : undefined
}
