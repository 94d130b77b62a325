/**
 * Looks at an answer while it streams by, without holding it up: what was billed, what the provider did to the request, and
 * which of our tools the model calls.
 */
import { isFields, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { Gathered } from './gather.ts'
import { Lines, LONGEST_LINE } from './lines.ts'
import type { StreamLine } from './lines.ts'
import type { Api } from './request.ts'
import { countsTogether, soundUsage } from '../models/index.ts'
import type { GivenCounts } from '../models/index.ts'
import { isRecallCall } from './recall-tool.ts'

/** The tokens that the provider has billed for a request. */
export interface Usage {
  /** Input that was neither read from the cache nor written to it. */
  input: number
  cacheRead: number
  cacheWrite: number
  /** Those of `cacheWrite` that were written to be kept for an hour; absent for none. */
  cacheWriteHour?: number
  output: number
}

/** The facts of an answer that are known at its end. */
export interface Answered {
  /** Undefined if it names no figures. */
  usage: Usage | undefined
  /** A figure was missing, could not be true, or contradicted another one. */
  isDoubtful?: true
  /** `input_transformations`, as the provider reports them. */
  transformations: readonly Fields[]
  /** IDs of calls of our tool, if the request has it. */
  recalls: readonly string[]
}

/** Events without any of these words are not parsed. */
const WORTH = ['"usage"', '"usageMetadata"', '"functionCall"', '"input_transformations"', 'activate']

/** The largest number of calls of our tool that one answer notes. */
const MOST_RECALLS = 1_000

/** Reads one answer. Feed it the decoded bytes in order; damaged ones are skipped. */
export class AnswerReader {
  readonly #api: Api
  /** Undefined until the first byte has told whether it is a stream or one object. */
  #lines: Lines | undefined
  /** The figures as they were given; undefined before the first. */
  #given: GivenCounts | undefined
  #transformations: Fields[] = []
  readonly #recalls = new Set<string>()
  #isRead = false
  /** The beginning of an event whose object goes over several lines of data; undefined if none has begun. */
  #begun: Gathered | undefined

  constructor(api: Api) {
    this.#api = api
  }

  /** True if anything of a known form has come. */
  get isRead(): boolean {
    return this.#isRead
  }

  /** Takes the next bytes. */
  write(bytes: Buffer): void {
    if (this.#lines === undefined) {
      const first = bytes.find((byte) => !SPACES.has(byte))
      if (first === undefined) return
      // Some providers name no type of content, or a wrong one.
      this.#lines = first === BRACE || first === BRACKET ? new Lines((line) => this.#whole(line), false) : new Lines((line) => this.#event(line), true)
      return this.#lines.write(bytes.subarray(bytes.indexOf(first)))
    }
    this.#lines.write(bytes)
  }

  /** Returns what the answer has said. */
  end(): Answered {
    this.#lines?.end()
    this.#finish()
    this.#lines = undefined
    const rest = { transformations: this.#transformations, recalls: [...this.#recalls] }
    const sound = this.#given === undefined ? undefined : soundUsage(this.#given)
    if (sound === undefined) return { usage: undefined, ...rest }
    const { isDoubtful, ...usage } = sound
    return { usage, ...(isDoubtful === true && { isDoubtful }), ...rest }
  }

  #event({ bytes, isWhole, beginning }: StreamLine): void {
    if (!beginning.startsWith('data:')) {
      // An empty line ends an event.
      if (bytes.length === 0) this.#finish()
      return
    }
    this.#isRead = true
    if (!isWhole) return this.#takeEnd(bytes)
    if (this.#begun !== undefined || isOpen(bytes)) return this.#go(bytes.subarray('data:'.length))
    if (WORTH.some((word) => bytes.includes(word))) this.#take(bytes.toString('utf8', 'data:'.length))
  }

  /** Takes one of several lines of an event. */
  #go(line: Buffer): void {
    this.#begun ??= new Gathered()
    if (this.#begun.size + line.length > LONGEST_LINE) return
    this.#begun.add(line)
    this.#begun.add(SPACE)
  }

  /** Ends an event of several lines. */
  #finish(): void {
    const all = this.#begun?.bytes
    this.#begun = undefined
    if (all !== undefined && WORTH.some((word) => all.includes(word))) this.#take(all.toString('utf8'))
  }

  #whole({ bytes, isWhole }: StreamLine): void {
    if (isWhole) return this.#take(bytes.toString('utf8'))
    this.#isRead = true
    this.#takeEnd(bytes)
  }

  /** Takes the end of an object that is too long: the last figures in it. */
  #takeEnd(bytes: Buffer): void {
    const text = bytes.toString('utf8')
    for (let at = text.lastIndexOf(USAGE); at >= 0; at = at === 0 ? -1 : text.lastIndexOf(USAGE, at - 1)) {
      const usage = objectAt(text, at + USAGE.length)
      if (usage === undefined || !FIGURES.some((name) => typeof usage[name] === 'number')) continue
      this.#bill(usage)
      return
    }
  }

  #take(json: string): void {
    for (const event of eventsIn(json)) this.#takeEvent(event)
  }

  #takeEvent(event: Fields): void {
    this.#isRead = true
    // Each format has the answer itself in its first or last event, or as the whole body.
    // Groq puts the bill of a stream into `x_groq`.
    for (const one of [event, event['message'], event['response'], event['x_groq']]) {
      if (!isFields(one)) continue
      if (isFields(one['usage'])) this.#bill(one['usage'])
      if (isFields(one['usageMetadata'])) this.#billGemini(one['usageMetadata'])
      if (Array.isArray(one['input_transformations'])) this.#transformations = one['input_transformations'].filter(isFields)
    }
    // Moonshot bills in the last choice.
    if (!isFields(event['usage'])) for (const { usage } of fieldsIn(event['choices'])) if (isFields(usage)) this.#bill(usage)
    if (this.#recalls.size < MOST_RECALLS)
      for (const call of callsIn(event))
        if (isRecallCall(textOf(call['name']), textOf(call['namespace']), true)) this.#recalls.add(textOf(call['call_id']) || textOf(call['id']))
  }

  /** Gemini counts what was cached in the prompt, and the model's thoughts apart from the answer. Zeros come before the last figures. */
  #billGemini(given: Fields): void {
    const input = countsTogether(given['promptTokenCount'], given['toolUsePromptTokenCount'])
    const output = countsTogether(given['candidatesTokenCount'], given['thoughtsTokenCount'])
    if ((input ?? 0) === 0 && ((output ?? 0) === 0 || this.#given !== undefined)) return
    this.#given = { input, output: output ?? 0, cacheRead: given['cachedContentTokenCount'], cacheWrite: undefined, isWhole: true }
  }

  #bill(given: Fields): void {
    const counts = this.#api === 'messages' ? anthropicCounts(given) : openaiCounts(given)
    const named = Object.entries(counts).filter(([, count]) => count !== undefined && count !== null)
    if (named.length === 0) return
    // Later events of Anthropic repeat what has changed; elsewhere, each has all figures.
    this.#given =
      this.#api === 'messages' ? { ...NO_COUNTS, ...this.#given, ...(Object.fromEntries(named) as Partial<GivenCounts>) } : { ...counts, isWhole: true }
  }
}

const NO_COUNTS: GivenCounts = { input: undefined, output: undefined, cacheRead: undefined, cacheWrite: undefined }

function anthropicCounts(given: Fields): GivenCounts {
  const split = isFields(given['cache_creation']) ? given['cache_creation'] : {}
  return {
    input: given['input_tokens'],
    output: given['output_tokens'],
    cacheRead: given['cache_read_input_tokens'],
    cacheWrite: given['cache_creation_input_tokens'],
    fiveMinutes: split['ephemeral_5m_input_tokens'],
    hour: split['ephemeral_1h_input_tokens'],
  }
}

/** DeepSeek and Moonshot have other names for what was cached. */
function openaiCounts(given: Fields): GivenCounts {
  const details = [given['input_tokens_details'], given['prompt_tokens_details']].find(isFields) ?? {}
  return {
    input: given['input_tokens'] ?? given['prompt_tokens'],
    output: given['output_tokens'] ?? withReasoning(given),
    cacheRead: details['cached_tokens'] ?? given['prompt_cache_hit_tokens'] ?? given['cached_tokens'],
    cacheWrite: details['cache_write_tokens'],
  }
}

/** The tokens of an answer of Chat Completions. xAI counts its reasoning apart, as the total tells; for others it is a part of the answer. */
function withReasoning({ prompt_tokens: prompt, completion_tokens: answer, total_tokens: total, completion_tokens_details: details }: Fields): unknown {
  const reasoning = isFields(details) ? details['reasoning_tokens'] : undefined
  const isApart = [prompt, answer, total, reasoning].every((count) => typeof count === 'number') && total === sumOf(prompt, answer, reasoning)
  return isApart && reasoning !== 0 ? sumOf(answer, reasoning) : answer
}

function sumOf(...counts: unknown[]): number {
  return (counts as number[]).reduce((sum, count) => sum + count, 0)
}

const USAGE = '"usage"'

/** The names of the token figures in the formats. */
const FIGURES = ['input_tokens', 'output_tokens', 'prompt_tokens', 'completion_tokens']

/** In characters, with the space before it. */
const LONGEST_USAGE = 4096

const SPACE = Buffer.from(' ')

/** True if a line of data begins an object or a list and does not end it. */
function isOpen(line: Buffer): boolean {
  let [from, to] = ['data:'.length, line.length - 1]
  while (from < to && SPACES.has(line[from] as number)) from += 1
  while (to > from && SPACES.has(line[to] as number)) to -= 1
  const [first, last] = [line[from], line[to]]
  return (first === BRACE || first === BRACKET) && (from === to || (last !== END_BRACE && last !== END_BRACKET))
}

const BRACE = 0x7b
const END_BRACE = 0x7d
const END_BRACKET = 0x5d

/** Gemini's streams without `alt=sse` are one list. */
const BRACKET = 0x5b

/** Space, tab and ends of lines, and the mark of UTF-8 at the beginning of a file. */
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])

/** The object behind a name in JSON, from its colon on; undefined if there is none, or not all of it. */
function objectAt(text: string, from: number): Fields | undefined {
  const start = /^\s*:\s*\{/.exec(text.slice(from, from + 100))?.[0].length
  if (start === undefined) return undefined
  let [depth, isText] = [1, false]
  const end = Math.min(text.length, from + LONGEST_USAGE)
  for (let at = from + start; at < end; at += 1) {
    const one = text[at]
    if (isText && one === '\\') at += 1
    else if (one === '"') isText = !isText
    else if (!isText && one === '{') depth += 1
    else if (!isText && one === '}') depth -= 1
    if (depth > 0) continue
    return eventsIn(text.slice(from + start - 1, at + 1))[0]
  }
  return undefined
}

/** The events of a text: it is one, or a list of them. */
function eventsIn(json: string): Fields[] {
  try {
    const value: unknown = JSON.parse(json)
    return Array.isArray(value) ? value.filter(isFields) : isFields(value) ? [value] : []
  } catch {
    return []
  }
}

/** The calls in an event, or in a whole answer. */
function callsIn(event: Fields): Fields[] {
  const { content_block: block, item, choices, content, candidates, output, response } = event
  const deltas = fieldsIn(choices).flatMap(({ delta, message }) => [delta, message])
  const calls = deltas.filter(isFields).flatMap(({ tool_calls: list }) => fieldsIn(list))
  const functions = calls.map((call) => ({ id: call['id'], name: isFields(call['function']) ? call['function']['name'] : undefined }))
  // The last event of a stream repeats its items.
  const items = [...fieldsIn(output), ...(isFields(response) ? fieldsIn(response['output']) : [])]
  const blocks = [block, event['type'] === 'response.output_item.done' ? item : undefined, ...items, ...fieldsIn(content)]
  // A login with Google has the answer in an envelope.
  const all = [...fieldsIn(candidates), ...(isFields(response) ? fieldsIn(response['candidates']) : [])]
  const parts = all.flatMap(({ content: one }) => (isFields(one) ? fieldsIn(one['parts']) : []))
  const gemini = parts.flatMap(({ functionCall: call }) => (isFields(call) ? [call] : []))
  return [...blocks.filter(isFields), ...functions, ...gemini]
}

/** The objects in a list; none if the value is not a list. */
function fieldsIn(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}
