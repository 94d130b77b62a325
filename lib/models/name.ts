/** Reading the name of a model: its maker's family, its class within the family, and its version. */
import { remembered } from './remembered.ts'

/** The families whose models are told apart here. */
export type Family = 'claude' | 'gpt' | 'gemini' | 'grok' | 'deepseek' | 'kimi' | 'glm' | 'qwen' | 'minimax' | 'mistral'

/** The parts of a model's name. */
export interface ModelName {
  /** Undefined for a model of no known family. */
  family: Family | undefined
  /** The rest of the name in lower case, without the provider, the region and the cloud's prefixes. */
  id: string
  /** Within the family, such as `opus` or `sol`; undefined if the name has none. */
  tier: string | undefined
  /** Such as 5.5; undefined if the name gives none, as `claude-opus-latest`, which is then the newest. */
  version: number | undefined
}

/** The words by which each family is known, wherever they stand in a name. */
const FAMILIES: readonly [Family, RegExp][] = [
  ['claude', /(?:^|[^a-z])claude(?:$|[^a-z])/],
  ['gpt', /(?:^|[^a-z])(?:gpt(?!-?oss)|chatgpt|codex|o[1-9](?:$|-))/],
  ['gemini', /(?:^|[^a-z])gemini/],
  ['grok', /(?:^|[^a-z])grok/],
  ['deepseek', /deepseek/],
  ['kimi', /kimi|^k[3-9](?:$|[-.])/],
  ['glm', /(?:^|[^a-z])glm-/],
  ['qwen', /qwen|qwq/],
  ['minimax', /minimax/],
  ['mistral', /mistral|codestral|devstral|magistral|ministral/],
]

const CLAUDE_TIERS = /(fable|mythos|opus|sonnet|haiku|instant)/

/**
 * Reads a name as catalogues, clouds and gateways write it: `claude-opus-5-5`, `anthropic/claude-opus-5.5`,
 * `us.anthropic.claude-opus-5-5-v1:0`, `openai/gpt-6.1-sol`. Never throws.
 */
export const readName: (name: string) => ModelName = remembered(
  (name) => name,
  (name: string): ModelName => {
    const lower = name.toLowerCase().trim()
    const id = lower.slice(lower.lastIndexOf('/') + 1)
    const family = FAMILIES.find(([, words]) => words.test(id) || words.test(lower))?.[0]
    const tier =
      family === 'claude' ? CLAUDE_TIERS.exec(id)?.[1] : family === 'gpt' ? /-(sol|terra|luna|astra|cyber|mini|nano|pro)(?:$|[^a-z])/.exec(id)?.[1] : undefined
    return { family, id, tier, version: family === undefined ? undefined : versionOf(family, id) }
  },
)

/** The version in a model's ID. A date of eight digits is not a version, and `-v1:0` is the cloud's. */
function versionOf(family: Family, id: string): number | undefined {
  if (family === 'gpt' && /^(?:.*[^a-z])?o[1-9](?:$|-)/.test(id)) return 4
  const found = VERSIONS[family].exec(id)
  if (found === null) return undefined
  const minor = found[2]?.replace(/^0+(?=\d)/, '')
  return Number(minor === undefined ? found[1] : `${found[1]}.${minor}`)
}

const TAIL = String.raw`(?:[-.p](\d{1,2}))?(?![\dk])`
const VERSIONS: Readonly<Record<Family, RegExp>> = {
  // `claude-opus-5-5`, and before 4 `claude-3-5-sonnet`.
  claude: new RegExp(String.raw`(?:fable|mythos|opus|sonnet|haiku|claude|instant)[-.]v?(\d{1,2})${TAIL}`),
  gpt: new RegExp(String.raw`gpt-?(\d{1,2})${TAIL}`),
  gemini: new RegExp(String.raw`gemini-(\d{1,2})${TAIL}`),
  grok: new RegExp(String.raw`grok-(\d{1,2})${TAIL}`),
  deepseek: new RegExp(String.raw`v(\d{1,2})${TAIL}`),
  kimi: new RegExp(String.raw`k(\d{1,2})${TAIL}`),
  glm: new RegExp(String.raw`glm-(\d{1,2})${TAIL}`),
  qwen: new RegExp(String.raw`qwen-?(\d{1,2})${TAIL}`),
  minimax: new RegExp(String.raw`m(\d{1,2})${TAIL}`),
  mistral: new RegExp(String.raw`(\d{1,2})${TAIL}`),
}
