/** Options that `run` and `gateway` share. */
import { join } from 'node:path'
import { billsFile, folderBeside, formsFolder } from '../gateway/index.ts'
import type { GatewayOptions } from '../gateway/index.ts'
import { LIFETIME_OPTIONS } from '../models/index.ts'
import type { LifetimeOption } from '../models/index.ts'
import { modelsIn } from './models-file.ts'
import { STORE_HELP, storeOf } from './store.ts'
import { UsageError } from '../ui/index.ts'

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
