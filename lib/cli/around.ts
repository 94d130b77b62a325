/** The program without a command: it looks around, and says where to begin. It writes nothing. */
import { COMMANDS, enabledParts } from '../enable/index.ts'
import { accountText, columns, dayOf, dollars, out, percent, Progress, tell, tokens, widthOf, wrapped } from '../ui/index.ts'
import { agentFolders, folderNames, programPath, usedFolders } from '../usage/index.ts'
import { estimated, estimateOf } from './estimate.ts'
import type { AgentSessions, Found } from './estimate.ts'
import { DONE } from './exit.ts'
import { ignoreInterrupts } from './signals.ts'
import { billsBeside } from './store.ts'

/** The most time for the sums, and for all, in milliseconds since the process began: it ends within ten seconds. */
const READING_MS = 5500
const ALL_MS = 8500

/** The least share that counts as a saving. */
const LEAST_SHARE = 0.005

/** Looks at the agents and sessions of this machine, for ten seconds at most; Ctrl-C ends that, and what is known is shown. */
export async function lookAround(): Promise<number> {
  const installed = agentFolders().filter(({ command }) => programPath(command) !== undefined)
  let isStopped = false
  const stop = (): void => {
    if (isStopped) process.exit(INTERRUPTED)
    isStopped = true
  }
  const goOn = ignoreInterrupts()
  process.on('SIGINT', stop)
  const progress = new Progress()
  const isPast = (ms: number): boolean => isStopped || performance.now() > ms
  let found: Found
  try {
    found = await estimated(usedFolders(), billsBeside(undefined), {
      isReadingOver: () => isPast(READING_MS),
      isOver: () => isPast(ALL_MS),
      progress: (part, text) => progress.show(part, text),
    })
  } finally {
    progress.clear()
    process.off('SIGINT', stop)
    goOn()
  }
  for (const line of report(
    found,
    installed.map(({ agent }) => agent),
  ))
    out(line)
  for (const [what, command] of advice(
    found,
    installed.map(({ command }) => command),
  ))
    out(`${what.padEnd(12)}${command}`)
  if (isStopped) tell('stopped: these are the figures so far')
  return isStopped ? INTERRUPTED : DONE
}

/** As shells expect of a program that Ctrl-C has ended. */
const INTERRUPTED = 130

/** The findings as lines: a table of the agents, and sentences about it. `names`: the agents that are installed. */
export function report(found: Found, names: readonly string[]): string[] {
  const used = found.agents.filter(({ calls }) => calls > 0)
  const width = Math.min(100, widthOf(process.stdout))
  const here = names.length === 0 ? 'No coding agent that is known here is installed.' : `Installed: ${listed(names)}.`
  if (used.length === 0 && found.read < found.files)
    return [...wrapped(`${here} There was no time to read recorded sessions; "usage" reads all ${found.files} files.`, width), '']
  if (used.length === 0) return [...wrapped(`${here} There are no recorded sessions in ${folderNames()}.`, width), '']
  const rows = used.map((agent) => [
    agent.agent,
    agent.sessions.toLocaleString('en-US'),
    agent.since === undefined ? '-' : dayOf(agent.since),
    paidCell([agent]),
    estimateCell([agent]),
  ])
  const total = ['total', sumOf(used, 'sessions').toLocaleString('en-US'), '', paidCell(used), estimateCell(used)]
  const table = columns([['agent', 'sessions', 'since', 'paid', 'with us'], ...rows, ...(rows.length > 1 ? [total] : [])])
  return [here, '', ...table, '', ...notes(found, used).flatMap((note) => wrapped(note, width)), '']
}

function notes(found: Found, used: readonly AgentSessions[]): string[] {
  const [unpriced, unbilled] = [sumOf(used, 'unpriced'), sumOf(used, 'unbilled')]
  const onPlan = planOf(used)
  const managed = { paid: used.reduce((sum, one) => sum + one.managed.paid, 0), saved: used.reduce((sum, one) => sum + one.managed.saved, 0) }
  return [
    ...estimateNotes(used),
    ...(managed.paid > 0 ? [`It ran in sessions that cost ${dollars(managed.paid)}, and saved ${dollars(managed.saved)} there by its own account.`] : []),
    ...(found.read < found.files ? [`These are the newest ${found.read} of ${found.files} session files; "usage" reads them all.`] : []),
    ...(onPlan.calls > 0
      ? [
          `${callsText(onPlan.calls, 'was', 'were')} made on a plan at a flat rate, and ${onPlan.calls === 1 ? 'counts' : 'count'} in tokens: ${planText(onPlan)}.`,
        ]
      : []),
    ...found.listed.lines().map((line) => `${line}.`),
    ...(unpriced > 0
      ? [`${callsText(unpriced, 'is of a model', 'are of models')} without known prices and ${unpriced === 1 ? 'counts' : 'count'} as $0.`]
      : []),
    ...(unbilled > 0 ? [`${callsText(unbilled, 'has', 'have')} no bill and ${unbilled === 1 ? 'counts' : 'count'} as $0.`] : []),
    ...(found.unreadable > 0
      ? [
          `${found.unreadable === 1 ? 'One file or folder' : `${found.unreadable} files and folders`} could not be read, or held no session; "usage" names them.`,
        ]
      : []),
  ]
}

/** A number of calls, with its verb: `1 call has`, `1,200 calls have`. */
function callsText(count: number, one: string, many: string): string {
  return count === 1 ? `1 call ${one}` : `${count.toLocaleString('en-US')} calls ${many}`
}

/** The estimate in a sentence, and whose sessions it leaves out. */
function estimateNotes(used: readonly AgentSessions[]): string[] {
  const known = used.filter(({ sample }) => sample.paid > 0)
  const unknown = used.filter((one) => estimateOf(one) === undefined).map(({ agent }) => agent)
  if (known.length === 0)
    return unknown.length > 0 ? ['What they would have cost with pi-context-manager takes longer to find out; "replay --all" does it.'] : []
  const open = known.reduce((sum, { paid, managed: own }) => sum + paid - own.paid, 0)
  const own = known.reduce((sum, one) => sum + (estimateOf(one) ?? 0) - one.managed.paid, 0)
  const share = open > 0 ? 1 - own / open : 0
  const sessions = known.reduce((sum, { sample }) => sum + sample.sessions, 0)
  const whose = unknown.length === 0 ? 'they' : `those of ${listed(known.map(({ agent }) => agent))}`
  const by = `by a replay of ${sessionsText(known, sessions)}`
  return [
    Math.abs(share) < LEAST_SHARE
      ? `With pi-context-manager ${whose} would have cost about the same, ${by} on the cache that they had.`
      : `With pi-context-manager ${whose} would have cost about ${percent(Math.abs(share))} ${share > 0 ? 'less' : 'more'}: an estimate, ${by} on the cache that they had.`,
    ...(unknown.length === 0 ? [] : [`Sessions of ${listed(unknown)} could not be replayed here and have no estimate; "replay --all" takes its time for all.`]),
  ]
}

/** The sessions of a sample in words. */
function sessionsText(known: readonly AgentSessions[], sessions: number): string {
  if (known.length > 1) return `${sessions} sessions, the newest of each agent first,`
  return sessions === 1 ? 'the newest session' : `the newest ${sessions} sessions`
}

/** The payment for some agents; `plan` if a plan at a flat rate paid for all of it. */
function paidCell(some: readonly AgentSessions[]): string {
  return isOnPlan(some) ? 'plan' : dollars(sumOf(some, 'paid'))
}

function isOnPlan(some: readonly AgentSessions[]): boolean {
  return planOf(some).calls === sumOf(some, 'calls')
}

function planOf(some: readonly AgentSessions[]): AgentSessions['onPlan'] {
  const sum = (name: keyof AgentSessions['onPlan']): number => some.reduce((all, { onPlan }) => all + onPlan[name], 0)
  return { calls: sum('calls'), sent: sum('sent'), without: sum('without') }
}

/** The account of calls on a plan: `saved 60k tokens (25 %): sent 180k tokens, without pi-context-manager 240k tokens`. */
function planText({ sent, without }: AgentSessions['onPlan']): string {
  const written = (count: number): string => `${tokens(count)} tokens`
  return Math.round(without) === Math.round(sent) ? `sent ${written(sent)}` : accountText({ paid: sent, without }, written, 'sent')
}

/** The cost that some agents would have had, or a dash if that of one of them is unknown. `~`: it is an estimate. */
function estimateCell(some: readonly AgentSessions[]): string {
  if (isOnPlan(some)) return '-'
  const costs = some.map((one) => estimateOf(one))
  if (costs.includes(undefined)) return '-'
  const isExact = some.every(({ paid, managed }) => paid <= managed.paid)
  return `${isExact ? '' : '~'}${dollars(costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0))}`
}

/** The next steps: a word and a command each. The agent that costs most comes first. */
function advice({ agents }: Found, installed: readonly string[]): [what: string, command: string][] {
  const used = agents.filter(({ calls }) => calls > 0).sort((left, right) => right.paid - left.paid || right.onPlan.sent - left.onPlan.sent)
  const present = used.filter(({ command }) => installed.includes(command))
  const first = (present[0] ?? used[0])?.command ?? installed[0] ?? 'PROGRAM'
  const isUsed =
    agents.some(({ command, managed, onPlan }) => command === first && (managed.paid > 0 || onPlan.calls > 0)) ||
    enabledParts(process.env).some(({ command }) => command === first)
  const begin =
    first === 'pi'
      ? 'pi install npm:pi-context-manager'
      : `pi-context-manager ${programPath('pi-context-manager') === undefined || !COMMANDS.some((one) => one === first) ? 'run -- ' : 'enable '}${first}`
  return [
    isUsed ? ['Go on with:', 'pi-context-manager usage'] : ['Begin with:', begin],
    ...(used.length > 0 ? ([['In detail:', 'pi-context-manager replay --all']] as [string, string][]) : []),
    ['Commands:', 'pi-context-manager --help'],
  ]
}

function sumOf(agents: readonly AgentSessions[], name: 'sessions' | 'calls' | 'paid' | 'unpriced' | 'unbilled'): number {
  return agents.reduce((sum, one) => sum + one[name], 0)
}

function listed(names: readonly string[]): string {
  return names.length === 1 ? (names[0] as string) : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
