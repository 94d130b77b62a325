/**
 * Recognizes a chat whose host has written its history anew, as after a resume: by what its user said first and what the model has
 * answered since. A host leaves that as it was. It masks and repeats outputs, drops signatures and reasoning,
 * and writes another date before the first prompt.
 */
import { createHash } from 'node:crypto'
import { isFields } from '../core/index.ts'
import { commonLength, linkOf } from './prefix.ts'
import { firstPrompt } from './request.ts'
import type { ModelRequest } from './request.ts'
import { shapeOf } from './shape.ts'

/** The answers of a conversation, for comparison. */
export interface Said {
  /** The first words of its user; empty if its host has lost them. */
  prompt: string
  /** Hashes: entry n is that of the model's first n texts and calls, without the IDs of calls: some hosts add them later. */
  chain: readonly string[]
  /** The same with the IDs. */
  called: readonly string[]
  /** Places between its messages from which reading may continue, ascending. */
  ends: readonly End[]
}

/** A place behind some messages of a conversation. */
interface End {
  /** The number of messages before it. */
  at: number
  /** The number of hashes for them. */
  length: number
  /** The text before it that the next message may continue. */
  text: string
}

/** Before the first message. */
const START: End = { at: 0, length: 1, text: '' }

/** So many texts and calls in a row, with their IDs, tell a chat also without its first prompt. */
const ENOUGH = 3

/**
 * Reads the answers in the messages of a request. Continues behind the first `common` messages, if those were read before as a part
 * of the conversation that `before` is of.
 */
export function saidIn(request: Pick<ModelRequest, 'api' | 'messages'>, before?: Said, common = 0): Said {
  const { messages } = request
  // A text that ends there may continue in the next message.
  const ends = before?.ends.slice(0, Math.max(0, endsWithin(before.ends, common) - 1)) ?? []
  const from = ends.at(-1) ?? START
  const [chain, called] = [before?.chain.slice(0, from.length) ?? [''], before?.called.slice(0, from.length) ?? ['']]
  const add = (piece: string, id = ''): void => {
    chain.push(hashOf([chain.at(-1), piece]))
    called.push(hashOf([called.at(-1), piece, id]))
  }
  let { text } = from
  const end = (): void => {
    if (text.trim() !== '') add(JSON.stringify(text.trim()))
    text = ''
  }
  const shape = shapeOf(request.api)
  for (let { at } = from; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    for (const { role, content } of parts) {
      for (const block of role === 'assistant' ? blocksOf(content) : []) {
        if (block['type'] === 'text') text += String(block['text'])
        if (block['type'] !== 'toolCall') continue
        end()
        add(JSON.stringify([block['name'], block['arguments']]), String(block['id']))
      }
      if (role !== 'assistant') end()
    }
    at += size
    ends.push({ at, length: chain.length, text })
  }
  end()
  return { prompt: firstPrompt(request), chain, called, ends }
}

/** Reads the answers of a conversation that grows. The cost depends on what is new since the last time. */
export class SaidSoFar {
  #messages: readonly object[] = []
  #said: Said | undefined

  /** Reads a conversation, which mostly continues where the last one ended. */
  of(api: ModelRequest['api'], messages: readonly object[]): Said {
    const before = this.#messages
    const common = before === messages ? messages.length : commonLength(before, messages)
    if (this.#said === undefined || common < messages.length || common < before.length)
      this.#said = saidIn({ api, messages: messages as ModelRequest['messages'] }, this.#said, common)
    this.#messages = messages
    return this.#said
  }
}

/** The number of places that have at most `common` messages before them. */
function endsWithin(ends: readonly End[], common: number): number {
  return ends.findLastIndex(({ at }) => at <= common) + 1
}

/** The marks by which a later process finds a conversation. Nothing can be read with them. Empty before the first answer. */
export function marksOf({ prompt, chain, called }: Said, length = chain.length - 1): string[] {
  if (length === 0) return []
  const hashes = [hashOf([prompt, chain[length]]), ...(length < ENOUGH ? [] : [called[length] as string])]
  return hashes.map(linkOf)
}

/**
 * The marks of all beginnings of a conversation, with the number of texts and calls in each. `byCalls`: only those with the IDs of calls,
 * which a host that names its sessions keeps; two branches of such a session may say the same otherwise.
 */
export function lengthsOf(said: Said, byCalls = false): Map<string, number> {
  const from = byCalls ? 1 : 0
  return new Map(
    said.chain.flatMap((_, length) =>
      marksOf(said, length)
        .slice(from)
        .map((mark) => [mark, length] as const),
    ),
  )
}

/** The number of texts and calls that a request has in common with a chat of these marks that its host has written anew; 0: it is another one. */
export function lengthAnew(marks: readonly string[], lengths: ReadonlyMap<string, number>): number {
  return Math.max(0, ...marks.map((mark) => lengths.get(mark) ?? 0))
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}

function blocksOf(content: unknown): Record<string, unknown>[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isFields) : []
}
