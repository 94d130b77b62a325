/** The answers of a scripted model, and the gates that hold an answer back until a test lets it go. */
import type { ModelRequest, RawPart, ScriptedCall, Usage } from './exchange.ts'

/** One piece of a streamed answer. A string is text; a gate holds the stream open until it is released. */
export type Part = string | { text: string } | { thinking: string; isRedacted?: true } | { call: ScriptedCall } | RawPart | Gate

/** An answer. Exactly one of the three forms: content, an HTTP error, or a broken stream (`cut`). */
export interface Reply {
  /** Content in order. `thinking`, `text` and `calls` are put in front of it, in that order. */
  parts?: Part[]
  thinking?: string
  text?: string
  calls?: ScriptedCall[]
  /** Why the model stopped; default `toolUse` with calls, else `stop`. */
  finish?: 'stop' | 'length' | 'toolUse'
  /** Fields that replace what the prefix-cache meter counted. */
  usage?: Partial<Usage>
  /** Held back before the response's head is sent: a server that hangs. */
  before?: Gate
  /** An HTTP status other than 200 makes this reply an error. */
  status?: number
  /** The error's sentence; default names the status. */
  error?: string
  /** Headers of the response, such as `retry-after`. */
  headers?: Record<string, string>
  /** The connection is dropped after the parts: no finish reason, no end of the stream. */
  cut?: boolean
}

/** A reply, or just its text. */
export type Answer = Reply | string

/**
 * The model's behaviour: an answer for each request in turn, or a function of the request and its number from 0.
 * A list that runs out, and a function that throws, answer HTTP 400 and are reported by the server's `problems`.
 */
export type Script = readonly Answer[] | ((request: ModelRequest, n: number) => Answer | Promise<Answer>)

/** Holds an answer back until a test says so. Releasing twice is harmless. */
export class Gate {
  /** Resolves when the server has come to the gate: what stands before it has been sent. */
  readonly reached: Promise<void>
  /** Resolves when the gate is released. */
  readonly released: Promise<void>
  #reach!: () => void
  #release!: () => void

  constructor() {
    this.reached = new Promise((resolve) => (this.#reach = resolve))
    this.released = new Promise((resolve) => (this.#release = resolve))
  }

  /** Called by the server: says that the gate has been reached, and waits there. */
  pass(): Promise<void> {
    this.#reach()
    return this.released
  }

  /** Lets the answer continue. */
  release(): void {
    this.#release()
  }
}

/** A tool call as a part of an answer. */
export function call(name: string, args: object | string, id?: string): { call: ScriptedCall } {
  return { call: id === undefined ? { name, args } : { name, args, id } }
}

/** An answer that only calls tools, in parallel when there are several. */
export function calls(...list: [name: string, args: object | string, id?: string][]): Reply {
  return { parts: list.map(([name, args, id]) => call(name, args, id)) }
}

/** The parts of an answer in the order they are streamed; calls have their ids. */
export function partsOf(reply: Reply, n: number): Part[] {
  const parts: Part[] = []
  if (reply.thinking !== undefined) parts.push({ thinking: reply.thinking })
  if (reply.text !== undefined) parts.push({ text: reply.text })
  for (const entry of reply.calls ?? []) parts.push({ call: entry })
  parts.push(...(reply.parts ?? []))
  let position = 0
  return parts.map((part) => {
    if (typeof part === 'string') return { text: part }
    if (part instanceof Gate || !('call' in part)) return part
    const id = part.call.id ?? `call_${n}_${position}`
    position += 1
    return { call: { ...part.call, id } }
  })
}
