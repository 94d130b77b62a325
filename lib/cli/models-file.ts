/** The user's own facts about models: the file that the option `--models` names. */
import { readFileSync } from 'node:fs'
import { isFields } from '../core/index.ts'
import type { ModelOverrides } from '../gateway/index.ts'
import { isAmount, isGivenPrices, PRICE_NAMES } from '../models/index.ts'
import { reasonOf, suggestion, UsageError } from '../ui/index.ts'

/** The help lines of the option where only prices count. */
export const PRICES_HELP = `  --models FILE         your own prices of models, as "gateway --models" takes
                        them, where the files name none`

/** The facts in a file of models, by name. Throws a {@link UsageError} for something else. */
export function modelsIn(file: string): ModelOverrides {
  let found: unknown
  try {
    found = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${reasonOf(error)}`)
  }
  if (!isFields(found)) throw new UsageError(`${file} is not a JSON object of models`)
  for (const [name, facts] of Object.entries(found)) {
    if (!isFields(facts)) throw new UsageError(`${file}: "${name}" needs an object of facts about the model`)
    // Entries of other catalogues have more facts. One that is nearly ours is a mistake.
    const unknown = Object.keys(facts).find((fact) => !FACTS.includes(fact) && suggestion(fact, FACTS) !== '')
    if (unknown !== undefined) throw new UsageError(`${file}: "${name}" has no fact "${unknown}"${suggestion(unknown, FACTS)}`)
    const wrong = AMOUNTS.find((fact) => facts[fact] !== undefined && !isAmount(facts[fact]))
    if (wrong !== undefined)
      throw new UsageError(`${file}: "${wrong}" of "${name}" needs a number from 0 to 1,000,000,000,000, not ${JSON.stringify(facts[wrong])}`)
    if (!isGivenPrices(facts)) throw new UsageError(`${file}: "tiers" of "${name}" needs a list of {"inputTokensAbove": TOKENS, "factor": TIMES}`)
  }
  return found as ModelOverrides
}

/** The facts that are amounts. */
const AMOUNTS = [...PRICE_NAMES, 'contextWindow', 'cacheTtlMs']

/** All facts that count. */
const FACTS = [...AMOUNTS, 'tiers', 'binding', 'textIsReasoning', 'lookbackBlocks', 'lookbackEndings', 'name']
