/** Calls that count at list prices because nothing says whether a plan at a flat rate paid for them. */
import { programTitle } from '../recordings/index.ts'
import type { Format } from '../recordings/index.ts'
import type { Charge } from './charges.ts'

/** Adds up such calls by the agent whose file has them. */
export class ListedCalls {
  readonly #counts = new Map<string, number>()

  /** Takes a charge of an agent's file that the gateway has not noted. */
  add({ calls, cost, plan, isManaged }: Pick<Charge, 'calls' | 'cost' | 'plan' | 'isManaged'>, format: Format): void {
    // Codex's files say it, keys pay for mini-swe-agent, and where the context manager ran, it has said it.
    if (calls === 0 || plan !== undefined || isManaged || format === 'codex' || format === 'mini-swe-agent' || !((cost ?? 0) > 0)) return
    const title = programTitle(format)
    this.#counts.set(title, (this.#counts.get(title) ?? 0) + calls)
  }

  /** A sentence about them; none for none. */
  lines(): string[] {
    const names = [...this.#counts.keys()]
    if (names.length === 0) return []
    const calls = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    const whose = names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
    return [
      `${calls.toLocaleString('en-US')} ${calls === 1 ? 'call' : 'calls'} of ${whose} ${calls === 1 ? 'counts at its list price' : 'count at list prices'}: these files don't say whether a plan at a flat rate paid`,
    ]
  }
}
