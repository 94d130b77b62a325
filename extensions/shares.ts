/** Figures as people read them: tokens, and parts that add up to their total (largest remainder method). */
import type { Plan } from '../index.js'
import { SavingLedger } from '../lib/projection/index.ts'

/**
 * `total` units, divided in proportion to `weights` into whole numbers that add up to it. Every part with a weight gets at
 * least `least` units if there are enough.
 */
export function apportion(weights: readonly number[], total: number, least = 0): number[] {
  const sum = weights.reduce((all, weight) => all + weight, 0)
  if (sum <= 0 || total <= 0) return weights.map(() => 0)
  const exact = weights.map((weight) => (total * weight) / sum)
  const found = exact.map(Math.floor)
  const byRemainder = weights.map((_, index) => index).sort((left, right) => remainder(exact[right]) - remainder(exact[left]) || left - right)
  const missing = total - found.reduce((all, count) => all + count, 0)
  for (const index of byRemainder.slice(0, missing)) found[index] = (found[index] ?? 0) + 1
  return least === 0 ? found : withLeast(weights, found, least)
}

/** Moves units from the largest parts to those that have too few. */
function withLeast(weights: readonly number[], found: readonly number[], least: number): number[] {
  const result = [...found]
  for (const [index, weight] of weights.entries()) {
    while (weight > 0 && (result[index] ?? 0) < least) {
      const largest = result.indexOf(Math.max(...result))
      if ((result[largest] ?? 0) <= least) return result
      result[largest] = (result[largest] ?? 0) - 1
      result[index] = (result[index] ?? 0) + 1
    }
  }
  return result
}

function remainder(value = 0): number {
  return value - Math.floor(value)
}

/** A number of tokens as `950`, `41k`, `1.2M`. */
export function short(count: number): string {
  const unit = unitOf(count)
  return inUnits(Math.round(count / unit), unit)
}

/** Token counts in the unit in which `total` is shown, so that they add up to it. */
export function shortParts(parts: readonly number[], total: number): string[] {
  const unit = unitOf(total)
  return apportion(parts, Math.round(total / unit)).map((count, index) =>
    count === 0 && (parts[index] ?? 0) > 0 ? `<${inUnits(1, unit)}` : inUnits(count, unit),
  )
}

/** Percentages that add up to `total`. */
export function percentParts(parts: readonly number[], total: number): string[] {
  return apportion(parts, Math.round(total)).map((count, index) => (count === 0 && (parts[index] ?? 0) > 0 ? '<1 %' : `${count} %`))
}

function unitOf(count: number): number {
  const size = Math.abs(count)
  if (size < 999.5) return 1
  if (size < 9_950) return 100
  return size < 999_500 ? 1000 : 100_000
}

function inUnits(count: number, unit: number): string {
  if (unit === 1) return String(count)
  if (unit === 100) return `${(count / 10).toFixed(1)}k`
  return unit === 1000 ? `${count}k` : `${(count / 10).toFixed(1)}M`
}

/** The figures of the last plan, and the sums so far. */
export class Figures {
  /** Estimated tokens of the next request. */
  contextTokens = 0
  /** The part of them that a roll could remove. */
  staleTokens = 0
  /** The amounts billed for the calls of the branch, beside those of plain Pi. */
  readonly ledger = new SavingLedger()

  /** Takes over what a plan says. */
  planned({ contextTokens, staleTokens }: Plan): void {
    this.contextTokens = contextTokens
    this.staleTokens = staleTokens
  }
}
