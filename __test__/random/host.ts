/**
 * A host whose user, model and tools do anything: they continue, step back, change earlier messages, and reuse call IDs. Its steps
 * are a list of events, so that a fault can be repeated without the generator.
 */
import type { Call, Step } from '../hosts/conversation.ts'
import { random } from '../../rig/random.ts'
import type { Random } from '../../rig/random.ts'

/** An event. `at` is a place in the conversation as a share of its length, so that an event fits whatever came before. */
export type Event =
  | { do: 'prompt'; size: number }
  | { do: 'calls'; ids: string[]; size: number; args: 'short' | 'long' | 'odd'; says: number; reasons: boolean; images?: true }
  | { do: 'answer'; size: number }
  | { do: 'insert'; at: number; what: 'prompt' | 'calls'; size: number }
  | { do: 'change'; at: number; what: 'prompt' | 'answer' | 'output' | 'argument'; size: number }
  | { do: 'remove' | 'swap' | 'back' | 'compact' | 'again'; at: number }
  | { do: 'wait' | 'retry' | 'restart' | 'fork' | 'aside' }

/** The events that a host behind the gateway has. */
export const GATEWAY: ReadonlySet<Event['do']> = new Set([
  'prompt',
  'calls',
  'answer',
  'insert',
  'change',
  'remove',
  'swap',
  'back',
  'compact',
  'again',
  'wait',
  'retry',
  'restart',
  'fork',
  'aside',
])

/** Names of arguments that mean something to JavaScript. */
const ODD = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']

/** A number of lines, each with a token that nothing else has. */
const TOKEN = /t\d+x/g

/** The tokens in a value, in their order. */
export function tokensIn(value: unknown): string[] {
  return JSON.stringify(value).match(TOKEN) ?? []
}

/** A conversation as its host has it. */
export class Host {
  steps: Step[] = []
  #tokens = 0

  /** Applies an event that changes the conversation. True if anything but its end has changed. */
  apply(event: Event): boolean {
    const { steps } = this
    switch (event.do) {
      case 'prompt':
        steps.push({ user: this.#text('prompt', event.size) })
        return false
      case 'answer':
        steps.push({ text: this.#text('answer', event.size), calls: [] })
        return false
      case 'calls':
        steps.push(this.#calls(event))
        return false
      case 'insert': {
        const place = this.#place(event.at)
        const added: Step[] =
          event.what === 'prompt'
            ? [{ user: this.#text('inserted', event.size) }, { text: 'yes', calls: [] }]
            : [this.#calls({ ids: [`inserted_${this.#tokens}`], size: event.size, args: 'short', says: 0, reasons: false })]
        steps.splice(place, 0, ...added)
        return true
      }
      case 'change':
        return this.#change(event)
      case 'remove':
        return steps.length > 2 && steps.splice(this.#place(event.at), 1).length > 0
      case 'swap': {
        const place = this.#place(event.at)
        const [one, other] = [steps[place], steps[place + 1]]
        if (one === undefined || other === undefined) return false
        ;[steps[place], steps[place + 1]] = [other, one]
        return true
      }
      case 'back':
        return steps.length > 2 && steps.splice(Math.max(1, this.#place(event.at))).length > 0
      // A user says the same once more, or a model calls with the same words, arguments and IDs and gets the same.
      case 'again':
        if (steps.length > 0) steps.push(structuredClone(steps[this.#place(event.at)] as Step))
        return false
      case 'compact':
        if (steps.length < 6) return false
        steps.splice(0, Math.max(1, this.#place(event.at)), { user: this.#text('summary', 4) })
        return true
      default:
        return false
    }
  }

  #place(share: number): number {
    return Math.min(this.steps.length - 1, Math.floor(share * this.steps.length))
  }

  #change({ at, what, size }: Event & { do: 'change' }): boolean {
    const fits = (step: Step): boolean => ('user' in step ? what === 'prompt' : what === 'answer' || (what !== 'prompt' && step.calls.length > 0))
    const places = this.steps.flatMap((step, place) => (fits(step) ? [place] : []))
    const place = places[Math.floor(at * places.length)]
    if (place === undefined) return false
    const step = this.steps[place] as Step
    if ('user' in step) this.steps[place] = { user: this.#text('changed', size) }
    else if (what === 'answer') this.steps[place] = { ...step, text: this.#text('changed', size) }
    else {
      const [first, ...others] = step.calls as [Call, ...Call[]]
      const changed =
        what === 'output' ? { ...first, output: this.#text('redacted', size) } : { ...first, args: { ...first.args, command: `redacted ${this.#token()}` } }
      this.steps[place] = { ...step, calls: [changed, ...others] }
    }
    return true
  }

  #calls({ ids, size, args, says, reasons, images }: Omit<Event & { do: 'calls' }, 'do'>): Step {
    return {
      ...(reasons ? { reasoning: `thought ${this.#tokens}` } : {}),
      ...(says === 0 ? {} : { text: this.#text('says', says) }),
      calls: ids.map((id): Call => {
        const command = `run ${this.#token()}`
        const odd: object = JSON.parse(`{${JSON.stringify(ODD[this.#tokens % ODD.length])}:${JSON.stringify(this.#token())}}`)
        const own = args === 'short' ? { command } : args === 'odd' ? { command, ...odd } : { path: `/w/${this.#token()}`, content: this.#text('argument', 40) }
        const called = args === 'odd' ? { ...own, ...having(odd) } : own
        const call = { id, name: args === 'long' ? 'write' : 'bash', args: called, output: this.#text('output', size) }
        return images === true ? { ...call, image: true } : call
      }),
    }
  }

  #token(): string {
    this.#tokens += 1
    return `t${this.#tokens}x`
  }

  #text(name: string, lines: number): string {
    return Array.from({ length: lines }, (_, line) => `${name} ${this.#token()} line ${line}, and what else it has to say`).join('\n')
  }
}

/** The fields of an object, also one that is called `__proto__`, for a spread into another one. */
function having(fields: object): object {
  return Object.fromEntries(Object.entries(fields))
}

/** The events of a seed. `kinds` leaves out what a target can't do. */
export function* events(seed: number, kinds: ReadonlySet<Event['do']>): Generator<Event> {
  const rng = random(seed)
  yield { do: 'prompt', size: 1 }
  for (;;) {
    const event = one(rng)
    if (kinds.has(event.do)) yield event
  }
}

/** IDs that providers send: their own, those of local servers, and what looks like something else. */
const IDS = ['call_0', 'call_0', 'call_1', '__proto__', 'constructor', 'toolcall:x', '']

function one({ next, below, pick }: Random): Event {
  const size = (): number => pick([1, 3, 12, 40, 90])
  const dice = next()
  const at = next()
  if (dice < 0.4) {
    const ids = Array.from({ length: 1 + below(3) }, () => (next() < 0.3 ? pick(IDS) : `c${below(1e9)}`))
    const [lines, args, says, reasons] = [size(), pick(['short', 'short', 'long', 'odd'] as const), pick([0, 0, 1, 8]), next() < 0.2]
    return { do: 'calls', ids: [...new Set(ids)], size: lines, args, says, reasons, ...(at < 0.15 ? { images: true } : {}) }
  }
  if (dice < 0.55) return { do: 'prompt', size: size() }
  if (dice < 0.62) return { do: 'answer', size: size() }
  if (dice < 0.7) return { do: 'wait' }
  if (dice < 0.76) return { do: 'insert', at, what: pick(['prompt', 'calls']), size: size() }
  if (dice < 0.86) return { do: 'change', at, what: pick(['prompt', 'answer', 'output', 'argument']), size: size() }
  if (dice < 0.89) return { do: 'remove', at }
  if (dice < 0.9) return { do: 'swap', at }
  if (dice < 0.93) return { do: 'back', at: 1 - at * at }
  if (dice < 0.94) return { do: 'compact', at }
  if (dice < 0.96) return { do: 'again', at }
  return { do: pick(['retry', 'restart', 'fork', 'aside']) }
}
