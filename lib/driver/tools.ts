/** When the model gets the tools that bring text back: they are worth their price once a session is long enough. */
import type { Plan } from '../../index.js'

/** What the model is told once, when text has left its request and it has no tools to bring it back. */
export const HOW_TO_READ =
  'Shortened outputs, calls and texts are kept whole: read with path "id=..." shows one again, with offset and limit a part of it.'

/** The share of a session's cost so far that the tools may cost. */
const WORTH = 0.01

/** The highest cost of writing a token to the cache among known providers, in fresh input tokens. */
const WRITE = 1.25

/** The tools of a host that can give them to the model in the middle of a session. */
export interface RecallTools {
  /** Estimated tokens of their declarations. */
  readonly tokens: number
  /** Returns whether the model has them. */
  given(): boolean
  /** Returns whether the next call's provider takes new tools in mid-conversation, with the cached prompt still valid. */
  appends(): boolean
  /** Returns whether a change of the tools would cost the model its reasoning, so that they must not be given. */
  bound?(): boolean
  /** Gives them to the model from the next call on. `price` is what that costs once, in fresh input tokens. */
  give(price: number): void
}

/** Returns what the tools cost once, in fresh input tokens; undefined while that is too much for the session. */
export function worthOf(tools: Pick<RecallTools, 'tokens' | 'appends'>, { rewriteCost, spent }: Plan): number | undefined {
  // A tool's declaration stands at the very start of the prompt, and everything after it is written again.
  const price = (tools.appends() ? 0 : rewriteCost) + tools.tokens * WRITE
  return price > WORTH * spent ? undefined : price
}
