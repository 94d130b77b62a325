/** The lifetimes for which Pi's own requests ask Anthropic to keep what it caches. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { Binding, LifetimeOption } from '../lib/models/index.ts'
import { CacheLifetimes } from '../lib/projection/index.ts'
import type { PromptUsage } from '../lib/projection/index.ts'
import type { LifetimeChoice } from '../lib/ui/index.ts'

/** The circumstances on which a choice depends, besides the request. */
interface Circumstance {
  /** When the request was prepared, in milliseconds since the epoch. */
  at: number
  /** When Pi last refreshed the prompt in the cache; undefined if it has not since the last answer. */
  warmedMs: number | undefined
  /** The branch has no answer. */
  isNew: boolean
  binding: Binding
  systemTokens: number
  /** The saving on this branch so far, in fresh tokens. */
  savedTokens: number
}

/** The lifetimes of one session. */
export class SessionLifetimes {
  readonly #chosen: CacheLifetimes

  constructor(option: LifetimeOption) {
    this.#chosen = new CacheLifetimes(option)
  }

  /** The payload with the lifetimes that are chosen for it; undefined if it stays as it is. */
  changed(payload: unknown, { model, modelRegistry }: ExtensionContext, { binding, warmedMs: warmedAt, ...moment }: Circumstance): unknown {
    if (model?.api !== 'anthropic-messages') return undefined
    const { baseUrl: url, cost } = model
    const changed = this.#chosen.applied(payload, {
      url,
      paysByToken: !modelRegistry.isUsingOAuth(model),
      model: { input: cost.input, cacheRead: cost.cacheRead, binding },
      warmedAt,
      ...moment,
    })
    return changed === payload ? undefined : changed
  }

  /** The choice of the last request, and what the choices of this process have saved; undefined: as Pi asks. */
  get chosen(): LifetimeChoice | undefined {
    return this.#chosen.chosen
  }

  /** For how long the last request is kept as Pi asks, and as it was sent; undefined: as Pi asks. */
  get lives(): CacheLifetimes['lives'] {
    return this.#chosen.lives
  }

  /** Takes what the answer says. Nothing follows from one that does not tell lifetimes apart. */
  answered({ cacheWrite1h: cacheWriteHour, ...usage }: PromptUsage): void {
    this.#chosen.answered({ ...usage, cacheWriteHour })
  }
}
