/** The commands `enable` and `disable`. */
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { COMMANDS, placeOf, planDisable, planEnable, shellOf, Untouched } from '../enable/index.ts'
import type { Change, EnabledCommand, Plan, ShellName } from '../enable/index.ts'
import { NotFound, out, plain, suggestion, tell, UsageError } from '../ui/index.ts'
import { programPath, shortPath } from '../usage/index.ts'
import { DONE, exitHelp, FAILED, NONE } from './exit.ts'

export const ENABLE_HELP = `pi-context-manager enable [options] AGENT...

From the next terminal on, AGENT (claude, cline, codex, copilot, gemini, kilo,
opencode or qwen) starts through the gateway, as with "pi-context-manager run --
AGENT". The command adds a function with the agent's name to your shell's own
file, so the agent's arguments and its hints about resuming stay the same. It
shows the lines first and keeps a copy of the file beside it. The status line of
claude shows what was saved and when text leaves next, unless you have your own.

A file that is broken, read-only or a link, or that has changed in the meantime,
stays untouched.

  --shell NAME          bash, zsh or fish (default: that of $SHELL)
  --yes                 do not ask

${exitHelp('nothing was changed')}`

export const ENABLE_OPTIONS = { shell: { type: 'string' }, yes: { type: 'boolean', short: 'y' } } as const

export const DISABLE_HELP = `pi-context-manager disable [AGENT...]

Removes what "enable" added for these agents, or for all if you name none. Your
files are then as they were before, byte for byte, with your own changes since.
"doctor" lists what is enabled.

${exitHelp('there was nothing to remove')}`

export const DISABLE_OPTIONS = {} as const

/** Runs the command `enable`; resolves with the exit code. */
export async function enable(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: ENABLE_OPTIONS, allowPositionals: true })
  if (positionals.length === 0) throw new UsageError(`enable needs an agent: ${COMMANDS.join(', ')}`)
  const commands = positionals.map(commandOf)
  for (const command of commands) if (programPath(command) === undefined) throw new NotFound(`${command} is not installed: no folder of $PATH has it`)
  if (programPath('pi-context-manager') === undefined)
    throw new UsageError('no folder of $PATH has pi-context-manager, so a shell would not find it; "npm install --global pi-context-manager" puts it there')
  const shell = shellNamed(values.shell)
  const plans = commands.map((command) => ({ command, plan: planEnable(command, shell, process.env) }))
  for (const { plan } of plans) show(plan)
  const changes = plans.flatMap(({ plan }) => plan.changes)
  if (changes.length > 0 && values.yes !== true && !(await isConfirmed())) {
    tell('pi-context-manager: nothing was changed')
    return NONE
  }
  // A file may have lines for several agents, so each change looks at it anew.
  const done = plans.map(({ command, plan }) => ({
    command,
    isDone: plan.refusals.every(({ part }) => part !== 'function') && applied(plan.changes.length === 0 ? [] : planEnable(command, shell, process.env).changes),
  }))
  const enabled = done.filter(({ isDone }) => isDone).map(({ command }) => command)
  if (enabled.length > 0) {
    // In fish, each command has its own file.
    const files = new Set(enabled.map((command) => shortPath(placeOf(shell, command, process.env).file).replaceAll(/[^\p{L}\p{N}_~./:@%+,-]/gu, '\\$&')))
    const read = [...files].map((file) => `${shell === 'fish' ? 'source' : '.'} ${file}`).join('; ')
    out(
      plain(
        changes.length === 0 ? `${enabled.join(', ')}: enabled already` : `${enabled.join(', ')}: enabled for each new terminal; in this one after "${read}"`,
      ),
    )
  }
  return enabled.length === commands.length ? DONE : enabled.length > 0 ? FAILED : NONE
}

/** Runs the command `disable`; resolves with the exit code. */
export async function disable(args: string[]): Promise<number> {
  const { positionals } = parseArgs({ args, options: DISABLE_OPTIONS, allowPositionals: true })
  const commands = positionals.length > 0 ? positionals.map(commandOf) : [...COMMANDS]
  let [count, isWhole] = [0, true]
  for (const command of commands) {
    const plan = planDisable(command, process.env)
    for (const refusal of plan.refusals.filter(({ isOurs }) => isOurs)) {
      tell(plain(`pi-context-manager: ${shortPath(refusal.path)} stays untouched: ${refusal.why}`))
      isWhole = false
    }
    for (const change of plan.changes) {
      if (!applied([change])) isWhole = false
      else {
        count += 1
        out(plain(`${command}: the ${change.part} is gone from ${shortPath(change.path)}`))
      }
    }
  }
  if (count === 0 && isWhole)
    tell(
      `pi-context-manager: ${positionals.length > 0 ? `${positionals.join(', ')} ${positionals.length === 1 ? 'is' : 'are'} not enabled` : 'no agent is enabled'}`,
    )
  return !isWhole ? FAILED : count === 0 ? NONE : DONE
}

function show({ changes, refusals, own }: Plan): void {
  for (const path of own)
    out(plain(`${shortPath(path)} keeps your own status line; ours, "pi-context-manager status-line", would show what was saved and when text leaves next`))
  for (const { path, lines } of changes) {
    out(plain(`${shortPath(path)} gets:`))
    for (const line of lines.trimEnd().split('\n')) out(plain(`    ${line}`))
  }
  for (const { path, why, lines } of refusals) {
    tell(plain(`pi-context-manager: ${shortPath(path)} stays untouched: ${why}. These lines are for it:`))
    for (const line of lines.trimEnd().split('\n')) tell(plain(`    ${line}`))
  }
}

/** Makes changes. True if the function, where there is one among them, was added or taken away. */
function applied(changes: readonly Change[]): boolean {
  let isDone = true
  for (const { path, part, apply } of changes) {
    try {
      const copy = apply()
      if (copy !== undefined) out(plain(`${shortPath(path)} as it was: ${shortPath(copy)}`))
    } catch (error) {
      if (!(error instanceof Untouched)) throw error
      tell(plain(`pi-context-manager: ${shortPath(path)} stays untouched: ${error.message}`))
      if (part === 'function' || changes.length === 1) isDone = false
    }
  }
  return isDone
}

async function isConfirmed(): Promise<boolean> {
  if (process.stdin.isTTY !== true) {
    tell('pi-context-manager: "--yes" adds these lines')
    return false
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/i.test((await lines.question('Add these lines? [y/N] ')).trim())
  } finally {
    lines.close()
  }
}

function commandOf(text: string): EnabledCommand {
  const found = COMMANDS.find((one) => one === text)
  if (found !== undefined) return found
  if (text === 'pi') throw new UsageError('Pi has an extension instead: pi install npm:pi-context-manager')
  throw new UsageError(`no agent "${text}" can be enabled${suggestion(text, COMMANDS) || `; known are ${COMMANDS.join(', ')}`}`)
}

function shellNamed(given: string | undefined): ShellName {
  const found = shellOf(given === undefined ? process.env : { SHELL: given })
  if (found !== undefined) return found
  throw new UsageError(
    given === undefined
      ? 'your shell is not known here; name it with --shell bash, zsh or fish, or start agents with "pi-context-manager run -- AGENT"'
      : `--shell is bash, zsh or fish, not "${given}"`,
  )
}
