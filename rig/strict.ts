/**
 * A provider that binds its reasoning, as the newest models of Anthropic and OpenAI do: it signs each block, and knows at
 * the next request what stood before the block when it was made.
 *
 * Rules, from Anthropic's "Prefix checks on thinking blocks" and "Fix a thinking block bound to a different conversation":
 * a block is bound to `system`, the set of tools, all earlier content and the blocks before it. Blocks may leave from the
 * start, from the end, or all at once; never from the middle, and what has left does not come back. A mismatch is a 400,
 * unless the request asks for drops or the account is an old one. OpenAI (guide "Preserved reasoning") drops. How OpenAI
 * writes its report, and that it binds tools and the order of its items, is assumed.
 */
import { createHash } from 'node:crypto'
import { bedrockModel, betasOf, inMessages } from './bedrock.ts'
import type { ModelRequest, Outcome, Transformation, Verdict, WirePart } from './exchange.ts'
import { stepOfPart, stepsOf } from './strict-prefix.ts'
import type { Step } from './strict-prefix.ts'

/** The beta that lets a request choose, and the answer report. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

/** The options of a strict provider. */
export interface StrictOptions {
  /** `new` (default): a mismatch is refused unless the request asks for drops. `old`: nothing is lost unless it asks. */
  account?: 'new' | 'old'
  /** True if a model binds its reasoning. Default: every model does. */
  isBound?: (model: string) => boolean
  /** True if it knows neither the field that asks for drops nor its beta, as copies of Anthropic's API. */
  lacksControls?: boolean
}

/** The losses in some requests. Each block counts once. */
interface Loss {
  /** Requests answered with a 400 because of their reasoning. */
  refused: number
  /** Blocks that were dropped. */
  lost: number
  /** Those of them that were dropped while their turn was under way. */
  lostRunning: number
}

/** Sums up the verdicts of a server's requests. */
export function lossOf(requests: readonly ModelRequest[]): Loss {
  const dropped = new Map<string, boolean>()
  let refused = 0
  for (const { verdict } of requests) {
    if (verdict?.refusal !== undefined) refused += 1
    if (verdict?.outcome !== 'drops' || verdict.refusal !== undefined) continue
    for (const { signature, isRunning } of verdict.mismatches) if (!dropped.has(signature)) dropped.set(signature, isRunning)
  }
  return { refused, lost: dropped.size, lostRunning: [...dropped.values()].filter(Boolean).length }
}

/** The content that a signature covers. */
interface Signed {
  thought: string
  /** Everything before the block. */
  prefix: string
  /** The blocks before it that the model was shown, oldest first. */
  chain: readonly string[]
}

/** The provider. One remembers the signatures of all conversations. */
export class Strict {
  readonly #options: StrictOptions
  readonly #signed = new Map<string, Signed>()

  constructor(options: StrictOptions = {}) {
    this.#options = options
  }

  /** Checks a request. Returns its verdict, and what signs the parts of the answer; undefined if nothing is bound in it. */
  check(given: Pick<ModelRequest, 'api' | 'path' | 'body' | 'headers'>): { verdict: Verdict; sign: (part: WirePart) => WirePart } | undefined {
    const { isBound = () => true } = this.#options
    const request = asMessages(given)
    if (request.api === 'openai-completions' || request.api === 'google-generative-ai' || !isBound(String(request.body.model))) return undefined
    const { outcome, refusal } = this.#outcome(request)
    const verdict: Verdict = { outcome, refusal: refusal ?? misplacedSystem(request), mismatches: [], transformations: [] }
    const seen = new Seen()
    for (const step of stepsOf(request)) {
      if (!('thought' in step)) seen.pass(step)
      else this.#checkBlock(step, seen, verdict)
    }
    const [first] = verdict.mismatches
    if (outcome === 'refuses' && first !== undefined) {
      verdict.refusal ??=
        `${first.path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. ` +
        'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    }
    if (reports(request) && this.#options.lacksControls !== true)
      verdict.transformations = verdict.mismatches.map(({ path }) => reportOf(request.api, outcome, path))
    return { verdict, sign: (part) => this.#sign(request.api, part, seen) }
  }

  /** Returns the outcome that a request asks for, and a reason to refuse it whatever its blocks are. */
  #outcome(request: Pick<ModelRequest, 'api' | 'body' | 'headers'>): { outcome: Outcome; refusal: string | undefined } {
    if (request.api === 'openai-responses') return { outcome: 'drops', refusal: undefined }
    const thinking = request.body.thinking ?? {}
    const asked: unknown = thinking.block_binding?.prefix_mismatch_behavior
    const unset: Outcome = this.#options.account === 'old' ? 'keeps' : 'refuses'
    const refusal =
      asked === undefined
        ? undefined
        : !reports(request) || this.#options.lacksControls === true
          ? 'thinking.block_binding: Extra inputs are not permitted'
          : thinking.type === 'disabled'
            ? 'thinking.block_binding is not allowed when thinking is disabled'
            : undefined
    return { outcome: asked === 'drop_block' ? 'drops' : asked === 'error' ? 'refuses' : unset, refusal }
  }

  #checkBlock(step: Extract<Step, { thought: string }>, seen: Seen, verdict: Verdict): void {
    const { thought, signature, path, isRunning } = step
    const signed = this.#signed.get(signature)
    if (signed === undefined || signed.thought !== thought) {
      verdict.refusal ??= `${path}: Invalid \`signature\` in \`thinking\` block`
      return
    }
    const fits = signed.prefix === seen.prefix() && isSuffix(seen.chain, signed.chain)
    if (!fits) verdict.mismatches.push({ path, signature, isRunning })
    if (fits || verdict.outcome === 'keeps') seen.chain.push(signature)
  }

  #sign(api: ModelRequest['api'], part: WirePart, seen: Seen): WirePart {
    const step = stepOfPart(api, part)
    if (step !== undefined) seen.pass(step)
    if (!('thinking' in part)) return part
    const prefix = seen.prefix()
    const signature = Buffer.from(`${this.#signed.size} ${prefix}`).toString('base64')
    this.#signed.set(signature, { thought: part.thinking, prefix, chain: [...seen.chain] })
    seen.chain.push(signature)
    return { ...part, signature }
  }
}

/** The content that the model has been shown up to a place. */
class Seen {
  /** The signatures of the blocks shown, oldest first. */
  readonly chain: string[] = []
  readonly #tools = new Set<string>()
  #content = ''

  pass(step: Step): void {
    if ('bound' in step) this.#content = digest(this.#content, step.bound)
    else if ('tool' in step) this.#tools.add(step.tool)
  }

  prefix(): string {
    return digest(this.#content, ...[...this.#tools].sort())
  }
}

function digest(...parts: string[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length} ${part}`)
  return hash.digest('base64')
}

function isSuffix(now: readonly string[], then: readonly string[]): boolean {
  const from = then.length - now.length
  return from >= 0 && now.every((signature, index) => signature === then[from + index])
}

/**
 * The refusal of a request with a system message before a user's message; undefined for any other. Pi 1.6.0 sends several system
 * messages in a row: one with tools, one with the effort.
 */
export function misplacedSystem({ api, body }: Pick<ModelRequest, 'api' | 'body'>): string | undefined {
  if (api !== 'anthropic-messages') return undefined
  const roles = (body.messages as any[]).map(({ role }) => role)
  const at = roles.findIndex((role, n) => role === 'system' && n + 1 < roles.length && roles[n + 1] !== 'assistant' && roles[n + 1] !== 'system')
  return at < 0 ? undefined : `messages.${at}: role 'system' must precede an 'assistant' message or end the array`
}

/** True if the answer reports the fate of the blocks: OpenAI's always, Anthropic's with the beta. */
function reports({ api, headers }: Pick<ModelRequest, 'api' | 'headers'>): boolean {
  return api === 'openai-responses' || String(headers['anthropic-beta'] ?? '').includes(BINDING_BETA)
}

function reportOf(api: ModelRequest['api'], outcome: Outcome, path: string): Transformation {
  if (api === 'openai-responses') return { type: 'reasoning', action: 'removed', path, reason: 'prefix_mismatch' }
  const type = outcome === 'keeps' ? 'thinking_mismatch_allowed' : 'thinking_dropped'
  return { type, path, reason: 'prefix_binding_mismatch' }
}

/** A request to Bedrock as one to Anthropic: the rules and their words are the same. */
function asMessages(request: Pick<ModelRequest, 'api' | 'path' | 'body' | 'headers'>): Pick<ModelRequest, 'api' | 'body' | 'headers'> {
  const { api, path, body } = request
  if (api !== 'bedrock-converse-stream') return request
  return { api: 'anthropic-messages', body: { ...inMessages(body), model: bedrockModel(path) }, headers: { 'anthropic-beta': betasOf(body) } }
}
