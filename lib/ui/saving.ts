/** A saving in words: in the same ones on every screen, and plain where there is none. */
import { percent } from './percent.ts'

/** The costs of sessions with their answers, and without us: with the agent's own compactions. */
export interface Savings {
  paid: number
  without: number
}

/** The three figures of an account in a line: `saved $1.23 (33 %): paid $2.51, without pi-context-manager $3.74`. */
export function accountText(account: Savings, written: (amount: number) => string, verb: 'paid' | 'sent' = 'paid'): string {
  return `${shareText(account, written)}: ${paidText(account, written, verb)}`
}

/** The saving and its share: `saved $1.23 (33 %)`; `cost $0.02 more (1 %)`. */
export function shareText({ paid, without }: Savings, written: (amount: number) => string): string {
  const share = without > 0 ? ` (${percent(Math.abs(1 - paid / without))})` : ''
  return `${savingText(without - paid, written)}${share}`
}

/** The costs with us and without: `paid $2.51, without pi-context-manager $3.74`. On a plan, tokens are `sent`. */
export function paidText({ paid, without }: Savings, written: (amount: number) => string, verb: 'paid' | 'sent' = 'paid'): string {
  return `${verb} ${written(paid)}, without pi-context-manager ${written(without)}`
}

/** Returns a saving in words, given how its amount is written: `saved $0.84`; `cost $0.02 more` where plain would have been cheaper. */
export function savingText(saved: number, written: (amount: number) => string): string {
  return saved < 0 ? `cost ${written(-saved)} more` : `saved ${written(saved)}`
}

/** The same for the cell of a table in a column of savings. */
export function savingCell(saved: number, written: (amount: number) => string): string {
  return saved < 0 ? `${written(-saved)} more` : written(saved)
}

/** The difference of a cost, given its ratio to another: `12 % less`, `5 % more`, `the same`. */
export function difference(ratio: number): string {
  const percent = Math.round(100 * Math.abs(1 - ratio))
  if (percent === 0) return 'the same'
  return `${percent} % ${ratio < 1 ? 'less' : 'more'}`
}

/** The same before what it is compared with: `12 % less than`, `the same as`. */
export function compared(ratio: number): string {
  const words = difference(ratio)
  return `${words} ${words === 'the same' ? 'as' : 'than'}`
}

/** The share that was saved, for the cell of a table, given the ratio of a cost to what it would have been: `36 %`, `5 % more`. */
export function shareCell(ratio: number): string {
  const percent = Math.round(100 * (1 - ratio))
  return percent < 0 ? `${-percent} % more` : `${percent} %`
}
