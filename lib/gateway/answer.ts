/**
 * Looks at an answer while it streams by, without holding it up: what was billed, what the provider did to the request, and
 * which of our tools the model calls.
 */
import { StringDecoder } from 'node:string_decoder'
import { isFields, textOf } from '../harness/message.ts'
import type { Fields } from '../harness/message.ts'
import type { Api } from './request.ts'
import { isRecallCall } from './recall-tool.ts'

/** The tokens that the provider has billed for a request. */
export interface Usage {
  /** Input that was neither read from the cache nor written to it. */
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
}

/** The facts of an answer that are known at its end. */
export interface Answered {
  usage: Usage | undefined
  /** `input_transformations`, as the provider reports them. */
  transformations: readonly Fields[]
  /** IDs of calls of our tool, if the request has it. */
  recalls: readonly string[]
}

/** A whole answer that is not a stream is read up to this size, in bytes. */
const LARGEST_WHOLE = 8 * 1024 * 1024

/** Events without any of these words are not parsed. */
const WORTH = /"usage"|"input_transformations"|activate/

/** Reads one answer. Feed it the decoded bytes in order; damaged ones are skipped. */
export class AnswerReader {
  readonly #api: Api
  readonly #isStream: boolean
  readonly #text = new StringDecoder('utf8')
  #line = ''
  #size = 0
  #usage: Usage | undefined
  #transformations: Fields[] = []
  readonly #recalls: string[] = []

  constructor(api: Api, contentType: string) {
    this.#api = api
    this.#isStream = contentType.includes('event-stream')
  }

  /** Takes the next bytes. */
  write(bytes: Buffer): void {
    this.#size += bytes.length
    if (!this.#isStream && this.#size > LARGEST_WHOLE) return
    const text = this.#line + this.#text.write(bytes)
    if (!this.#isStream) {
      this.#line = text
      return
    }
    const lines = text.split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data:') && WORTH.test(line)) this.#take(line.slice(5))
  }

  /** Returns what the answer has said. */
  end(): Answered {
    if (this.#isStream ? this.#line.startsWith('data:') : this.#line !== '') this.#take(this.#isStream ? this.#line.slice(5) : this.#line)
    this.#line = ''
    return { usage: this.#usage, transformations: this.#transformations, recalls: this.#recalls }
  }

  #take(json: string): void {
    let event: unknown
    try {
      event = JSON.parse(json)
    } catch {
      return
    }
    if (!isFields(event)) return
    // Where each format has the answer itself: in its first or last event, or as the whole body.
    for (const one of [event, event['message'], event['response']]) {
      if (!isFields(one)) continue
      if (isFields(one['usage'])) this.#bill(one['usage'])
      if (Array.isArray(one['input_transformations'])) this.#transformations = one['input_transformations'].filter(isFields)
    }
    for (const call of callsIn(event)) if (isRecallCall(textOf(call['name']), textOf(call['namespace']), true)) this.#recalls.push(textOf(call['call_id']) || textOf(call['id']))
  }

  #bill(given: Fields): void {
    const before = this.#usage
    const count = (name: string, fields: Fields = given): number | undefined => (typeof fields[name] === 'number' ? fields[name] : undefined)
    if (this.#api === 'messages') {
      // Later events repeat what has changed.
      this.#usage = {
        input: count('input_tokens') ?? before?.input ?? 0,
        cacheRead: count('cache_read_input_tokens') ?? before?.cacheRead ?? 0,
        cacheWrite: count('cache_creation_input_tokens') ?? before?.cacheWrite ?? 0,
        output: count('output_tokens') ?? before?.output ?? 0,
      }
      return
    }
    const details = [given['input_tokens_details'], given['prompt_tokens_details']].find(isFields) ?? {}
    const all = count('input_tokens') ?? count('prompt_tokens') ?? 0
    const cacheRead = count('cached_tokens', details) ?? 0
    const cacheWrite = count('cache_write_tokens', details) ?? 0
    const input = Math.max(0, all - cacheRead - cacheWrite)
    this.#usage = { input, cacheRead, cacheWrite, output: count('output_tokens') ?? count('completion_tokens') ?? 0 }
  }
}

/** The calls in an event, or in a whole answer. */
function callsIn(event: Fields): Fields[] {
  const { content_block: block, item, choices, content } = event
  const deltas = Array.isArray(choices) ? choices.filter(isFields).flatMap(({ delta, message }) => [delta, message]) : []
  const calls = deltas.filter(isFields).flatMap(({ tool_calls: list }) => (Array.isArray(list) ? list.filter(isFields) : []))
  const functions = calls.map((call) => ({ id: call['id'], name: isFields(call['function']) ? call['function']['name'] : undefined }))
  const blocks = [block, event['type'] === 'response.output_item.done' ? item : undefined, ...(Array.isArray(content) ? content : [])]
  return [...blocks.filter(isFields), ...functions]
}
