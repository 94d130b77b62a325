/**
 * The one question of the first start: whether secrets are recorded. It is asked in a terminal only, at each start until it is
 * answered, and not at all if the settings already say.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import { writePrivately } from '../lib/ui/index.ts'
import type { StoreOptions } from '../lib/index.ts'
import { SETTINGS_FILE } from './settings.ts'

const QUESTION =
  'Context manager: files and tool outputs are now recorded on this machine. Leave out passwords and API keys of known shapes? (The setting "redact" keeps your answer.)'
const YES = 'Leave them out: what the model sees stays as it is'
const NO = 'Record everything: nothing is ever lost'

/** True if anything outlives the process in a store, so that there is something to ask about. */
export function isKept(options: StoreOptions): boolean {
  return options.kind !== 'memory'
}

/** The sentence for a user who closed the question: what holds now, and where to answer. */
export function unanswered(folder: string): string {
  return `Everything is recorded, passwords and API keys included, until you answer: Pi asks again at its next start, or set "redact" in ${join(folder, SETTINGS_FILE)}.`
}

/**
 * Asks, and keeps the answer as `redact` in the settings in `folder`. Resolves with it; with undefined, and nothing kept, if
 * the user closes the question. Throws a sentence if the settings can't be written.
 */
export async function askAboutSecrets(ctx: ExtensionContext, folder: string): Promise<boolean | undefined> {
  const answer = await ctx.ui.select(QUESTION, [YES, NO])
  if (answer === undefined) return undefined
  const redact = answer === YES
  const path = join(folder, SETTINGS_FILE)
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '{}'
  const settings = { ...(JSON.parse(text) as object), redact }
  await writePrivately(path, async (write) => write(`${JSON.stringify(settings, undefined, 2)}\n`))
  return redact
}
