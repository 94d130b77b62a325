/**
 * Recognizes a chat whose host names no session and has written its history anew, as after a resume: by what its user said first and
 * what the model has answered since. A host leaves that as it was. It masks and repeats outputs, drops signatures and reasoning,
 * and writes another date before the first prompt.
 */
import { createHash } from 'node:crypto'
import { isFields, resultText } from '../core/index.ts'
import type { EngineMessage } from '../core/index.ts'
import { placeholderOf } from '../tools/index.ts'
import { linkOf } from './prefix.ts'
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
}

/** So many texts and calls in a row, with their IDs, tell a chat also without its first prompt. */
const ENOUGH = 3

/** Reads the answers in the messages of a request. */
export function saidIn(request: Pick<ModelRequest, 'api' | 'messages'>): Said {
  const [chain, called]: [string[], string[]] = [[''], ['']]
  const add = (piece: string, id = ''): void => {
    chain.push(hashOf([chain.at(-1), piece]))
    called.push(hashOf([called.at(-1), piece, id]))
  }
  let text = ''
  const end = (): void => {
    if (text.trim() !== '') add(JSON.stringify(text.trim()))
    text = ''
  }
  for (const { role, content } of partsOf(request)) {
    for (const block of role === 'assistant' ? blocksOf(content) : []) {
      if (block['type'] === 'text') text += String(block['text'])
      if (block['type'] !== 'toolCall') continue
      end()
      add(JSON.stringify([block['name'], block['arguments']]), String(block['id']))
    }
    if (role !== 'assistant') end()
  }
  end()
  return { prompt: firstPrompt(request), chain, called }
}

/** The marks by which a later process finds a conversation. Nothing can be read with them. Empty before the first answer. */
export function marksOf({ prompt, chain, called }: Said, length = chain.length - 1): string[] {
  if (length === 0) return []
  const hashes = [hashOf([prompt, chain[length]]), ...(length < ENOUGH ? [] : [called[length] as string])]
  return hashes.map(linkOf)
}

/** The marks of all beginnings of a conversation, with the number of texts and calls in each. */
export function lengthsOf(said: Said): Map<string, number> {
  return new Map(said.chain.flatMap((_, length) => marksOf(said, length).map((mark) => [mark, length] as const)))
}

/** True if the messages of a request are those of a conversation that its host has written anew. */
export function isWrittenAnew(before: Pick<ModelRequest, 'api' | 'messages'>, now: Pick<ModelRequest, 'api' | 'messages'>, said: Said): boolean {
  if (said.chain.length === 1) return false
  const lengths = lengthsOf(said)
  return marksOf(saidIn(before)).some((mark) => lengths.has(mark)) && hasOutputs(outputsOf(before), outputsOf(now))
}

/** False if no call is the same, or one has another output: then it is another chat that begins alike. */
function hasOutputs(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): boolean {
  const same = [...before].filter(([id]) => now.has(id))
  return (before.size === 0 || same.length > 0) && same.every(([id, text]) => text === CLEARED || now.get(id) === CLEARED || now.get(id) === text)
}

/** Stands for a text that a host writes in place of an output. */
const CLEARED = ''

/** The outputs of calls by their IDs. */
function outputsOf(request: Pick<ModelRequest, 'api' | 'messages'>): Map<string, string> {
  const found = new Map<string, string>()
  for (const part of partsOf(request)) {
    if (part.role !== 'toolResult') continue
    const text = resultText(part)
    found.set(part.toolCallId ?? '', placeholderOf(text) === undefined ? text : CLEARED)
  }
  return found
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}

function* partsOf({ api, messages }: Pick<ModelRequest, 'api' | 'messages'>): Generator<EngineMessage> {
  const shape = shapeOf(api)
  for (let at = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    yield* parts
    at += size
  }
}

function blocksOf(content: unknown): Record<string, unknown>[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isFields) : []
}
