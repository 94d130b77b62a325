/** The options of the command `replay`. */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { CACHES, POLICY_NAMES, withNamed } from '../replay/index.ts'
import type { CacheRules, JsonReport, NamedRules, PolicyName, RecordUse, ReplayOptions } from '../replay/index.ts'
import { BINDINGS, UNKNOWN_PRICES } from '../models/index.ts'
import type { Binding, PriceFactor } from '../models/index.ts'
import { ratioPrices } from '../recordings/index.ts'
import { exitHelp } from './exit.ts'
import { modelsIn, PRICES_HELP } from './models-file.ts'
import { countOf, numberOf, suggestion, UsageError } from '../ui/index.ts'

export const REPLAY_HELP = `pi-context-manager replay [options] FILE|FOLDER|SESSION...

Shows what the context manager would have sent, cost and saved on recorded
sessions, next to other policies, on the cache that each session had: its
lifetime, its window, and where its provider lost it. Reads session files of Pi
(versions 1 to 3), transcripts of Claude Code, rollouts of Codex, sessions of
Gemini CLI, exports of OpenCode and trajectories of mini-swe-agent, also
gzipped; a folder means all session files in it. No model is called,
nothing is sent anywhere, and no file is changed.

What to read
  FILE|FOLDER...        session files, or folders of them
  SESSION...            sessions in the agents' own folders, by the names that
                        "sessions", "usage" and this command show
  --all                 the sessions of Pi, Claude Code, Codex, Gemini CLI and
                        OpenCode

What to compare
  --policies NAMES      recorded, append, pi, mask, clear, sections,
                        pi-context-manager, chosen-lifetime, bound, with commas
                        between them, or all (default: recorded, pi,
                        pi-context-manager and chosen-lifetime).
                        "recorded" is what was sent, "pi" is plain Pi,
                        "chosen-lifetime" also chooses how long Anthropic
                        keeps what it caches, "bound" is the lowest cost any
                        policy can reach. "sections" is slow on long sessions.

What to show
  --json                the report as JSON on standard output, instead of tables
  --html FILE           the report as one page for a browser
  --quiet               no tables
  --store FILE          keep the context manager's store for "inspect"; FILE
                        must not exist

How the provider caches and charges (default: as recorded, where the answers
have token counts; else a plain cache of 5 minutes)
  --cache RULES         plain (any common prefix), anthropic (Pi's breakpoints,
                        20 positions back, 5 minutes), anthropic-1h (an hour,
                        written at twice the price), openai (from GPT-5.6 on: 20
                        ends of messages and outputs back, 30 minutes),
                        openai-5.5 (older models: any prefix in steps of 128).
                        All but plain from 1,024 tokens on
  --lookback N          how many positions before a breakpoint, or ends, the
                        cache looks at
  --minimum N           the shortest prefix that is cached, in tokens
  --granularity N       the steps in which a prefix is cached, in tokens
  --lifetime SECONDS    how long a prefix stays cached
  --losses WHERE        record: every policy loses its cache where the session
                        did (default); none (default with --cache)
  --read R --write W    prices of a cached and of a written token, relative to a
                        fresh one (default: the prices of the model that was
                        used, and its steps)
${PRICES_HELP}
  --step N:FACTOR       with --read or --write: above N tokens the whole prompt
                        costs FACTOR times as much
  --binding WHAT        what the provider does with reasoning behind a change:
                        none, keeps, drops or refuses (default: what it does
                        with the model that was used, in Pi)
  --window N            the model's context window in tokens (default: as
                        recorded; else 1000000 if a request was too large for
                        200000)
  --chars-per-token N   characters per token (default: from the session's own
                        usage)
  --system-tokens N     tokens of the system prompt and tools (default: from the
                        session's own usage; Claude Code's are ten times those
                        of Pi)

The context manager's own settings
  --per-turn N          how many tool results of a turn stay active (default 5)
  --turns-back N        for how many turns results stay active (default 3)
  --only-at-user-turn   collapse only at the start of a user's turn
  --debt-cap SHARE      the share of what the session would have cost that
                        rolls may have cost beyond what they have saved, besides
                        5,000 tokens; 0 without these, or none (default 0.03)

As a check
  --save-baseline FILE  save the figures of "pi-context-manager"
  --check FILE          fail if a figure is worse than in FILE

${exitHelp('a file could not be read completely, or a check failed')}`

export const REPLAY_OPTIONS = {
  all: { type: 'boolean' },
  policies: { type: 'string' },
  json: { type: 'boolean' },
  html: { type: 'string' },
  quiet: { type: 'boolean' },
  store: { type: 'string' },
  cache: { type: 'string' },
  lookback: { type: 'string' },
  minimum: { type: 'string' },
  granularity: { type: 'string' },
  lifetime: { type: 'string' },
  read: { type: 'string' },
  write: { type: 'string' },
  step: { type: 'string' },
  models: { type: 'string' },
  binding: { type: 'string' },
  losses: { type: 'string' },
  window: { type: 'string' },
  'chars-per-token': { type: 'string' },
  'system-tokens': { type: 'string' },
  'per-turn': { type: 'string' },
  'turns-back': { type: 'string' },
  'only-at-user-turn': { type: 'boolean' },
  'debt-cap': { type: 'string' },
  'save-baseline': { type: 'string' },
  check: { type: 'string' },
} as const

/** The arguments, parsed. */
export type Values = ReturnType<typeof parse>['values']

/** Parses the arguments. */
export function parse(args: string[]) {
  return parseArgs({ args, options: REPLAY_OPTIONS, allowPositionals: true })
}

/** The options of a replay. Throws a {@link UsageError} for values that can't be used. */
export function optionsOf(values: Values): ReplayOptions {
  const { store } = values
  if (store !== undefined && existsSync(store)) throw new UsageError(`--store ${store}: the file exists; give a new name`)
  const prices = pricesOf(values)
  const binding = bindingOf(values.binding)
  const debtCap = debtCapOf(values['debt-cap'])
  return {
    policies: policiesOf(values.policies),
    cache: cacheOf(values),
    namedRules: namedRulesOf(values),
    window: countOf('window', values.window, 200_000, 1000),
    record: recordOf(values),
    manager: {
      perTurn: countOf('per-turn', values['per-turn'], 5, 1, 1_000_000),
      turnsBack: countOf('turns-back', values['turns-back'], 3, 1, 1_000_000),
      onlyAtUserTurn: values['only-at-user-turn'] === true,
      overheadTokens: OVERHEAD_TOKENS,
      ...(binding !== undefined && { binding }),
      ...(debtCap !== undefined && { open: { stay: { debtCap } } }),
    },
    ...prices,
    ...(values.models !== undefined && { models: modelsIn(values.models) }),
    ...(store !== undefined && { store }),
  }
}

/** Tokens of the extension's tools and its instructions to the model; the extension's tests enforce this limit. */
const OVERHEAD_TOKENS = 600

function policiesOf(text: string | undefined): PolicyName[] {
  if (text === undefined) return ['recorded', 'pi', 'pi-context-manager', 'chosen-lifetime']
  if (text === 'all') return [...POLICY_NAMES]
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.filter((name) => !(POLICY_NAMES as readonly string[]).includes(name))
  if (wrong.length > 0)
    throw new UsageError(`unknown policy "${wrong[0]}"${suggestion(wrong[0] ?? '', POLICY_NAMES) || `; known are ${POLICY_NAMES.join(', ')}`}`)
  return POLICY_NAMES.filter((name) => names.includes(name))
}

function cacheOf(values: Values): CacheRules {
  const name = values.cache ?? 'plain'
  if (!Object.hasOwn(CACHES, name)) {
    throw new UsageError(`there are no cache rules "${name}"; known are ${Object.keys(CACHES).join(', ')}`)
  }
  const rules: CacheRules = CACHES[name as keyof typeof CACHES]
  return { ...withNamed(rules, namedRulesOf(values)), lifetimeMs: 1000 * numberOf('lifetime', values.lifetime, rules.lifetimeMs / 1000, 0, 1e9) }
}

function namedRulesOf({ lookback, minimum, granularity }: Values): NamedRules {
  return {
    ...(lookback !== undefined && { lookback: numberOf('lookback', lookback, 0, 1, 1_000_000) }),
    ...(minimum !== undefined && { minimum: numberOf('minimum', minimum, 0) }),
    ...(granularity !== undefined && { granularity: numberOf('granularity', granularity, 1, 1) }),
  }
}

/** The parts of the record that count: everything that no option names. Rules for the cache mean another provider, who lost nothing. */
function recordOf({ cache, lifetime, window, losses = cache === undefined ? 'record' : 'none' }: Values): RecordUse {
  if (losses !== 'record' && losses !== 'none') throw new UsageError(`--losses is record or none, not "${losses}"`)
  return { cache: cache === undefined, lifetime: cache === undefined && lifetime === undefined, window: window === undefined, losses: losses === 'record' }
}

function debtCapOf(given: string | undefined): 'none' | number | undefined {
  return given === undefined || given === 'none' ? given : numberOf('debt-cap', given, 0, 0, 1_000_000)
}

function pricesOf(values: Values): Pick<ReplayOptions, 'prices' | 'openPrice'> {
  const { read, write, step } = values
  if (values.models !== undefined && (read ?? write) !== undefined)
    throw new UsageError('--models gives each model its prices, and --read and --write are those of all; give one of them')
  if (read === undefined && write === undefined) {
    if (step !== undefined) throw new UsageError('--step goes with --read or --write; without them, the models have their own')
    return {}
  }
  const prices = ratioPrices(numberOf('read', read, UNKNOWN_PRICES.cacheRead, 0, 1), numberOf('write', write, UNKNOWN_PRICES.cacheWrite, 0, 100))
  const open = read === undefined ? 'read' : write === undefined ? 'write' : undefined
  return { prices: step === undefined ? prices : { ...prices, steps: [stepOf(step)] }, ...(open !== undefined && { openPrice: open }) }
}

function stepOf(text: string): PriceFactor {
  const [size, factor, ...more] = text.split(':')
  if (size === undefined || factor === undefined || more.length > 0) throw new UsageError('--step needs a size and a factor, such as 272000:2')
  return { inputTokensAbove: numberOf('step', size, 0, 1, 1e9), factor: numberOf('step', factor, 1, 1, 100) }
}

function bindingOf(given: string | undefined): Binding | undefined {
  const found = BINDINGS.find((binding) => binding === given)
  if (given !== undefined && found === undefined) throw new UsageError(`--binding is one of ${BINDINGS.join(', ')}, not "${given}"`)
  return found
}

/** Derived from the session's own usage, unless the user sets it. */
export interface Scale {
  unitsPerToken: number | undefined
  systemTokens: number | undefined
}

/** Returns what the arguments say about tokens. */
export function scaleOf(values: Values): Scale {
  const number = (name: 'chars-per-token' | 'system-tokens', least: number, most: number): number | undefined =>
    values[name] === undefined ? undefined : numberOf(name, values[name], 0, least, most)
  return { unitsPerToken: number('chars-per-token', 1, 10), systemTokens: number('system-tokens', 0, 1_000_000) }
}

/** Says what the record decides, before what the options say of the rest. */
function recordText(record: RecordUse | undefined): string {
  const names = { cache: 'rules', lifetime: 'lifetime', window: 'window', losses: 'losses' } as const
  const used = (Object.keys(names) as (keyof RecordUse)[]).filter((name) => record?.[name] === true).map((name) => names[name])
  return used.length === 0 ? '' : `${used.join(', ')} by the record where it has them, else `
}

/** Returns what the figures were measured with, for programs and as a sentence. */
export function described(
  { cache, prices, openPrice, models, window, manager, record }: ReplayOptions,
  { unitsPerToken, systemTokens }: Scale,
): { json: JsonReport['options']; text: string } {
  const ratio =
    prices === undefined
      ? undefined
      : {
          ...(openPrice !== 'read' && { read: prices.cacheRead / prices.input }),
          ...(openPrice !== 'write' && { write: prices.cacheWrite / prices.input }),
        }
  const reach = cache.kind === 'prefix' ? 'any common prefix' : `${cache.lookback} ${cache.kind === 'endings' ? 'ends back' : 'positions before a breakpoint'}`
  const least = cache.minimum === 0 ? '' : `, ${cache.minimum} tokens at least`
  const steps = cache.granularity === 1 ? '' : `, steps of ${cache.granularity} tokens`
  const rules = `${cache.name} (${reach}${least}${steps}, kept ${cache.lifetimeMs / 1000} s)`
  const above = (prices?.steps ?? []).map(({ inputTokensAbove, factor }) => `, ${factor} times above ${inputTokensAbove}`).join('')
  const money =
    ratio === undefined
      ? models === undefined
        ? "the models' own prices"
        : `prices as given for ${Object.keys(models).join(', ')}, else the models' own`
      : `cached ${ratio.read ?? "as the model's own"}, written ${ratio.write ?? "as the model's own and as recorded"}${above}`
  const size = unitsPerToken === undefined ? 'tokens by the sessions’ own usage' : `${unitsPerToken} characters a token`
  const system = systemTokens === undefined ? '' : `, system prompt and tools ${systemTokens} tokens`
  const debt = manager.open?.stay?.debtCap
  const own = `window of ${manager.perTurn} results a turn and ${manager.turnsBack} turns${manager.onlyAtUserTurn ? ', rolls at user turns' : ''}${manager.binding === undefined ? '' : `, reasoning: ${manager.binding}`}${debt === undefined ? '' : `, debt cap ${debt}`}`
  return {
    json: {
      cache: cache.name,
      prices: ratio ?? 'own',
      window,
      ...(record !== undefined && { record }),
      charsPerToken: unitsPerToken ?? 'fitted',
      systemTokens: systemTokens ?? 'fitted',
    },
    text: `${recordText(record)}prompt cache ${rules}, ${money}, ${size}${system}, context window of ${window} tokens, ${own}`,
  }
}
