/** Assertions on what a model was sent. Each throws an Error that shows the place; none needs a test framework. */
import { commonPrefix } from './meter.ts'
import type { ModelRequest } from './exchange.ts'

export { total } from './meter.ts'
export type { Total } from './meter.ts'

/** Pi's made-up result for a call that has none; wanted only after a kill or an abort inside a tool. */
const NO_RESULT = 'No result provided'

/** A place where a request is not the earlier one plus an addition at its end. */
interface Break {
  /** The later request's number. */
  n: number
  /** The earlier request's number. */
  after: number
  /** The first message that differs; -1 is the list of tools. */
  message: number
  /** Position in the prompt text, in UTF-16 units. */
  at: number
  /** The earlier and the later prompt around the place. */
  before: string
  now: string
}

/**
 * Every tool call has exactly one result, at once after its assistant message, in the order of the calls; no result
 * is without its call. A made-up result counts as missing unless `allowNoResult`.
 */
export function checkToolPairs(request: ModelRequest, options: { allowNoResult?: boolean } = {}): void {
  const { messages } = request
  let index = 0
  while (index < messages.length) {
    const message = messages[index] as (typeof messages)[number]
    index += 1
    if (message.role === 'tool') fail(request, index - 1, 'a tool result that follows no call')
    if (message.calls.length === 0) continue
    const results: { id: string; text: string }[] = []
    while (messages[index]?.role === 'tool') {
      results.push(...(messages[index]?.results ?? []))
      index += 1
    }
    const wanted = message.calls.map((call) => call.id)
    const found = results.map((result) => result.id)
    if (JSON.stringify(wanted) !== JSON.stringify(found)) {
      fail(request, index - 1, `calls ${JSON.stringify(wanted)} were answered by ${JSON.stringify(found)}`)
    }
    const missing = results.find((result) => result.text === NO_RESULT)
    if (missing !== undefined && options.allowNoResult !== true) {
      fail(request, index - 1, `the call ${JSON.stringify(missing.id)} has only the made-up "${NO_RESULT}"`)
    }
  }
}

/** {@link checkToolPairs} on each request; there must be one. */
export function checkAllToolPairs(requests: readonly ModelRequest[], options: { allowNoResult?: boolean } = {}): void {
  if (requests.length === 0) throw new Error('no request to check')
  for (const request of requests) checkToolPairs(request, options)
}

/** The user messages, in order, are these texts; text that surrounds them in a message is allowed. */
export function checkUserMessages(request: ModelRequest, texts: readonly string[]): void {
  const sent = request.messages.filter((message) => message.role === 'user').map((message) => message.text)
  let from = 0
  for (const text of texts) {
    const at = sent.findIndex((candidate, index) => index >= from && candidate.includes(text))
    if (at < 0) {
      throw new Error(`request ${request.n}: no user message "${text}" in its place among ${JSON.stringify(sent)}`)
    }
    from = at + 1
  }
}

/**
 * The requests that are not the previous one with an addition at its end, message by message. `told` gives what counts of a message;
 * default: all of it.
 */
export function rewritten(requests: readonly ModelRequest[], told: (message: ModelRequest['messages'][number]) => string = ({ json }) => json): ModelRequest[] {
  return requests.filter(({ messages }, n) => {
    const before = requests[n - 1]?.messages ?? []
    return before.some((message, at) => messages[at] === undefined || told(messages[at]) !== told(message))
  })
}

/** Every place where a request does not extend the one before it, in order. Summary requests are left out. */
export function breaks(requests: readonly ModelRequest[]): Break[] {
  const agent = requests.filter((request) => request.kind === 'agent')
  const found: Break[] = []
  for (let index = 1; index < agent.length; index += 1) {
    const earlier = agent[index - 1] as ModelRequest
    const later = agent[index] as ModelRequest
    const at = commonPrefix(earlier.prompt, later.prompt)
    if (at === earlier.prompt.length) continue
    found.push({
      n: later.n,
      after: earlier.n,
      message: earlier.ends.findIndex((end) => at < end) - 1,
      at,
      before: around(earlier.prompt, at),
      now: around(later.prompt, at),
    })
  }
  return found
}

/**
 * Request n+1 is request n plus something at its end, byte for byte, except for the requests whose numbers are in
 * `except`; and each of those really is a break, so that a test names exactly the points it means.
 */
export function checkAppendOnly(requests: readonly ModelRequest[], except: readonly number[] = []): void {
  const found = breaks(requests)
  const unexpected = found.filter((place) => !except.includes(place.n))
  if (unexpected.length > 0) {
    throw new Error(`requests that rewrite the prompt:\n${unexpected.map(describe).join('\n')}`)
  }
  const absent = except.filter((n) => !found.some((place) => place.n === n))
  if (absent.length > 0) throw new Error(`requests ${absent.join(', ')} were to rewrite the prompt, and did not`)
}

/** A break as text for a person. */
function describe(place: Break): string {
  const where = place.message < 0 ? 'the tools' : `message ${place.message}`
  return (
    `request ${place.n} differs from request ${place.after} in ${where}, character ${place.at}:\n` +
    `  was ${JSON.stringify(place.before)}\n  is  ${JSON.stringify(place.now)}`
  )
}

function around(text: string, at: number): string {
  return text.slice(Math.max(0, at - 40), at + 80)
}

function fail(request: ModelRequest, index: number, what: string): never {
  const shape = request.messages.map((message, position) => {
    const ids = message.calls.map((call) => call.id).concat(message.results.map((result) => result.id))
    const start = JSON.stringify(message.text.slice(0, 60))
    return `${position === index ? '> ' : '  '}${position} ${message.role} ${ids.join(' ')} ${start}`
  })
  throw new Error(`request ${request.n}: ${what}\n${shape.join('\n')}`)
}
