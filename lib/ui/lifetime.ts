/** The chosen lifetime of the cache, in the same words on every screen. */
import { savingText } from './saving.ts'
import { tokens } from './tokens.ts'

/** A choice: in words, and what the choices have saved so far in fresh input tokens, below zero if they have cost more. */
export interface LifetimeChoice {
  why: string
  savedTokens: number
}

/** The choice in words: `five minutes, as you have set; that has saved about 12k fresh tokens so far`. */
export function lifetimeText({ why, savedTokens }: LifetimeChoice, written = (some: number): string => `about ${tokens(some)} fresh tokens`): string {
  const saved = Math.round(savedTokens) === 0 ? '' : `; that has ${savingText(savedTokens, written)} so far`
  return `${why}${saved}`
}
