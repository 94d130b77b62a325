/** The command `completion`: scripts that complete commands and options in shells. */
import { parseArgs } from 'node:util'
import type { Command } from './command.ts'
import { DONE, exitHelp } from './exit.ts'
import { painted, suggestion, UsageError } from '../ui/index.ts'

export const COMPLETION_HELP = `pi-context-manager completion SHELL

Prints a script that completes commands and options in bash, zsh or fish:

  bash   echo 'source <(pi-context-manager completion bash)' >> ~/.bashrc
  zsh    echo 'source <(pi-context-manager completion zsh)' >> ~/.zshrc
         (after compinit)
  fish   pi-context-manager completion fish \\
           > ~/.config/fish/completions/pi-context-manager.fish

${exitHelp()}`

export const COMPLETION_OPTIONS = {} as const

type Commands = Readonly<Record<string, Command>>

const SHELLS: Readonly<Record<string, (commands: Commands) => string>> = { bash, zsh, fish }

/** Runs the command; resolves with the exit code. */
export async function completion(args: string[], commands: Commands): Promise<number> {
  const { positionals } = parseArgs({ args, options: COMPLETION_OPTIONS, allowPositionals: true })
  const [shell = ''] = positionals
  const known = Object.keys(SHELLS)
  if (positionals.length !== 1 || !known.includes(shell)) {
    const given = shell === '' ? 'none was given' : `not "${shell}"${suggestion(shell, known)}`
    throw new UsageError(`completion needs one shell: ${known.join(', ')}; ${given}`)
  }
  painted(SHELLS[shell]?.(commands) ?? '')
  return DONE
}

const PROGRAM = 'pi-context-manager'

function optionsOf({ options }: Command): string[] {
  return [...Object.keys(options), 'help'].map((name) => `--${name}`)
}

function bash(commands: Commands): string {
  const cases = Object.entries(commands).map(([name, command]) => `    ${name}) words="${optionsOf(command).join(' ')}" ;;`)
  return `_pi_context_manager() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${Object.keys(commands).join(' ')} --help --version" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    help) words="${Object.keys(commands).join(' ')}" ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) [ "\${COMP_WORDS[1]}" = help ] && COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
}
complete -o default -F _pi_context_manager ${PROGRAM}`
}

function zsh(commands: Commands): string {
  const names = Object.entries(commands).map(([name, { summary }]) => `    ${quoted(`${name}:${summary}`)}`)
  const cases = Object.entries(commands).map(([name, command]) => `    ${name}) compadd -- ${optionsOf(command).join(' ')} ;;`)
  return `#compdef ${PROGRAM}
_pi_context_manager() {
  local -a commands=(
${names.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  if [[ "$PREFIX" != -* ]]; then
    _files
    return
  fi
  case "$words[2]" in
${cases.join('\n')}
  esac
}
compdef _pi_context_manager ${PROGRAM}`
}

function fish(commands: Commands): string {
  const first = `complete -c ${PROGRAM} -n __fish_use_subcommand`
  return Object.entries(commands)
    .flatMap(([name, command]) => [
      `${first} -f -a ${name} -d ${quoted(command.summary)}`,
      ...Object.keys(command.options).map((option) => `complete -c ${PROGRAM} -n '__fish_seen_subcommand_from ${name}' -l ${option}`),
    ])
    .join('\n')
}

/** A word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
