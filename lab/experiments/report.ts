/** The report of an experiment, as a page of Markdown. */
import type { Outcome } from './arm.ts'
import type { Task } from './task.ts'

/** The runs of one task, one for each arm. */
export interface Runs {
  task: Task
  seed: number
  /** In the order of the arms. */
  outcomes: readonly Outcome[]
}

/** The conditions that the runs share. */
interface Protocol {
  model: string
  pi: string
  seeds: readonly number[]
}

/** Writes the report. */
export function reportOf(all: readonly Runs[], { model, pi, seeds }: Protocol): string {
  const rows = all.flatMap(({ task, seed, outcomes }) => outcomes.map((outcome) => row([task.name, String(seed), outcome.arm], outcome)))
  const arms = (all[0]?.outcomes ?? []).map((first, index) => all.map(({ outcomes }) => outcomes[index] ?? first))
  const sums = arms.map((outcomes) => total(outcomes))
  const failures = all.flatMap(({ task, seed, outcomes }) =>
    outcomes.flatMap(({ arm, failure }) => (failure === undefined ? [] : [`- ${task.name}, seed ${seed}, ${arm}: ${failure}`])),
  )
  const tools = arms.map((outcomes) => `| ${outcomes[0]?.arm} | ${toolsOf(outcomes)} |`)
  const prompts = unique(all).map(({ task, seed }) => `### ${task.name} (seed ${seed})\n\n${task.prompts.map((prompt) => `1. ${prompt}`).join('\n')}`)
  return `# Experiment: ${model}

Pi ${pi}, with (\`managed\`) and without (\`plain\`) the context manager, on the same tasks in fresh folders. Seeds: ${seeds.join(', ')}. Figures are those that the provider reported, as Pi's session files have them; costs are by the prices of Pi's catalogue.

## In all

| | solved | calls | prompt tokens | from the cache | largest prompt | cost | re-reads |
|---|---|---|---|---|---|---|---|
${sums.join('\n')}

## Each run

| task | seed | | solved | calls | prompt tokens | from the cache | largest prompt | cost | re-reads |
|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

## Tools used

| | |
|---|---|
${tools.join('\n')}

## What was not solved

${failures.length === 0 ? 'Nothing.' : failures.join('\n')}

## Prompts

${prompts.join('\n\n')}
`
}

function row(names: string[], outcome: Outcome): string {
  return `| ${[...names, outcome.failure === undefined ? 'yes' : 'no', ...figures(outcome)].join(' | ')} |`
}

function total(outcomes: readonly Outcome[]): string {
  const arm = outcomes[0]?.arm ?? ''
  const sum = (pick: (outcome: Outcome) => number): number => outcomes.reduce((all, outcome) => all + pick(outcome), 0)
  const all: Outcome = {
    arm,
    failure: undefined,
    calls: sum((one) => one.calls),
    promptTokens: sum((one) => one.promptTokens),
    cachedTokens: sum((one) => one.cachedTokens),
    peakTokens: Math.max(0, ...outcomes.map((one) => one.peakTokens)),
    outputTokens: sum((one) => one.outputTokens),
    cost: sum((one) => one.cost),
    rereads: sum((one) => one.rereads),
    tools: {},
  }
  const solved = outcomes.filter((one) => one.failure === undefined).length
  return `| ${[arm, `${solved} of ${outcomes.length}`, ...figures(all)].join(' | ')} |`
}

function figures({ calls, promptTokens, cachedTokens, peakTokens, cost, rereads }: Outcome): string[] {
  const share = promptTokens === 0 ? '–' : `${((100 * cachedTokens) / promptTokens).toFixed(1)} %`
  return [String(calls), grouped(promptTokens), share, grouped(peakTokens), `$${cost.toFixed(4)}`, String(rereads)]
}

function toolsOf(outcomes: readonly Outcome[]): string {
  const counts = new Map<string, number>()
  for (const { tools } of outcomes) for (const [name, count] of Object.entries(tools)) counts.set(name, (counts.get(name) ?? 0) + count)
  return [...counts]
    .sort((left, right) => right[1] - left[1])
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

function unique(all: readonly Runs[]): Runs[] {
  return all.filter((runs, index) => all.findIndex((one) => one.task.name === runs.task.name) === index)
}

function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')
}
