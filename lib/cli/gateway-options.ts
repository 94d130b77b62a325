/** Options that `run` and `gateway` share. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { billsFile, folderBeside, formsFolder } from '../gateway/index.ts'
import type { GatewayOptions, ModelOverrides } from '../gateway/index.ts'
import { isAmount, isGivenPrices, LIFETIME_OPTIONS, PRICE_NAMES } from '../models/index.ts'
import { isFields } from '../core/index.ts'
import type { LifetimeOption } from '../models/index.ts'
import { STORE_HELP, storeOf } from './store.ts'
import { reasonOf, suggestion, UsageError } from '../ui/index.ts'

/** The help lines of the shared options. */
export const SHARED_HELP = `${STORE_HELP}
  --holdout SHARE       leave this share of the sessions unedited, such as 10%,
                        to measure what the others save (default: none)
  --models FILE         JSON with your own data about models, by name:
                        {"NAME": {"contextWindow": 200000, "input": 3,
                        "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}};
                        prices are in dollars per million tokens
  --cache-lifetime HOW  how long Anthropic keeps what it caches: auto (default;
                        chosen for the least cost, with an API key only), client
                        (as the agent asks), 5m or 1h
  --redact              take secrets of known shapes out of what is stored`

/** The options for `parseArgs`. */
export const SHARED_OPTIONS = {
  store: { type: 'string' },
  holdout: { type: 'string' },
  models: { type: 'string' },
  'cache-lifetime': { type: 'string' },
  redact: { type: 'boolean' },
} as const

/** The values that the options were set to. */
interface SharedValues {
  store?: string | undefined
  holdout?: string | undefined
  models?: string | undefined
  'cache-lifetime'?: string | undefined
  redact?: boolean | undefined
}

/** The gateway's options from them. Throws a {@link UsageError}. */
export function sharedOptions(
  values: SharedValues,
): Pick<GatewayOptions, 'open' | 'holdout' | 'models' | 'cacheLifetime'> & { formsPath: string; billsPath: string; secretPath: string } {
  const { options } = storeOf(values.store, true)
  return {
    open: { store: options, ...(values.redact === true ? { redact: true } : {}) },
    holdout: shareOf(values.holdout),
    ...(values['cache-lifetime'] === undefined ? {} : { cacheLifetime: lifetimeIn(values['cache-lifetime']) }),
    ...(values.models === undefined ? {} : { models: modelsIn(values.models) }),
    formsPath: formsFolder(options),
    billsPath: billsFile(options),
    secretPath: join(folderBeside(options), 'gateway.secret'),
  }
}

function shareOf(text: string | undefined): number {
  if (text === undefined) return 0
  const [, number, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? []
  const share = Number(number) / (percent === '%' ? 100 : 1)
  if (number === undefined || share > 1) throw new UsageError(`--holdout needs a share such as 10% or 0.1, not "${text}"`)
  return share
}

function lifetimeIn(text: string): LifetimeOption {
  const found = LIFETIME_OPTIONS.find((one) => one === text)
  if (found === undefined) throw new UsageError(`--cache-lifetime needs auto, client, 5m or 1h, not "${text}"`)
  return found
}

function modelsIn(file: string): ModelOverrides {
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
