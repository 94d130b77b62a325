/** The report of an experiment, as a page of Markdown. */
import type { Arm, Outcome } from './arm.ts'
import type { Task } from './task.ts'

/** One pair of runs. */
export interface Pair {
  task: Task
  seed: number
  outcomes: Record<Arm, Outcome>
}

/** What the runs have in common. */
export interface Protocol {
  model: string
  pi: string
  seeds: readonly number[]
}

const ARMS: readonly Arm[] = ['plain', 'managed']

/** Writes the report. */
export function reportOf(pairs: readonly Pair[], { model, pi, seeds }: Protocol): string {
  const rows = pairs.flatMap(({ task, seed, outcomes }) =>
    ARMS.map((arm) => row([task.name, String(seed), arm], outcomes[arm])),
  )
  const sums = ARMS.map((arm) =>
    total(
      pairs.map(({ outcomes }) => outcomes[arm]),
      arm,
    ),
  )
  const failures = pairs.flatMap(({ task, seed, outcomes }) =>
    ARMS.flatMap((arm) =>
      outcomes[arm].failure === undefined ? [] : [`- ${task.name}, seed ${seed}, ${arm}: ${outcomes[arm].failure}`],
    ),
  )
  const tools = ARMS.map((arm) => `| ${arm} | ${toolsOf(pairs.map(({ outcomes }) => outcomes[arm]))} |`)
  const prompts = unique(pairs).map(
    ({ task, seed }) =>
      `### ${task.name} (seed ${seed})\n\n${task.prompts.map((prompt) => `1. ${prompt}`).join('\n')}`,
  )
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

function total(outcomes: readonly Outcome[], arm: Arm): string {
  const sum = (pick: (outcome: Outcome) => number): number =>
    outcomes.reduce((all, outcome) => all + pick(outcome), 0)
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
  for (const { tools } of outcomes)
    for (const [name, count] of Object.entries(tools)) counts.set(name, (counts.get(name) ?? 0) + count)
  return [...counts]
    .sort((left, right) => right[1] - left[1])
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

function unique(pairs: readonly Pair[]): Pair[] {
  return pairs.filter((pair, index) => pairs.findIndex((one) => one.task.name === pair.task.name) === index)
}

function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')
}
