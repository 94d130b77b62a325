/**
 * Measures one session: for each recorded answer `-log p` of its tokens after the request that an arm would have sent.
 * One line of JSON per arm and answer is appended as soon as it is known, so that a run continues where it was stopped.
 */
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs'
import type { Arm, Captured } from './capture.ts'
import type { Part } from './chat.ts'
import { firstShorter } from './costs.ts'
import { onlyHidden } from './hidden.ts'
import type { Range } from './hidden.ts'
import type { Model } from './model.ts'

/** Tokens of an answer, and the nats that they cost. */
export interface Nats {
  tokens: number
  nats: number
}

/** One answer after the request of one arm. */
export interface Line {
  arm: string
  /** The number of the answer in its session, from 0. */
  answer: number
  /** Tokens of the request. */
  prompt: number
  /** Tokens of the full request. */
  full: number
  /** By part of the answer. */
  parts: Partial<Record<Part, Nats>>
  /** The same parts after the full request; absent in its own lines. */
  fullParts?: Partial<Record<Part, Nats>>
  /** Names and quotes that stand only in hidden text: after this request, and after the full one. */
  hidden?: Nats & { fullNats: number }
}

/** Names what is measured and where the results go. */
export interface Task {
  file: string
  arms: readonly { arm: Arm; captured: readonly Captured[] }[]
  /** Answers behind more tokens than this are left out. */
  limit: number
  /** Called after each answer, with the tokens that were decoded. */
  progress: (arm: string, answer: number) => void
}

/** Measures the arms of one session in turn; the first one is the full conversation. */
export async function measure(model: Model, task: Task): Promise<void> {
  const done = doneIn(task.file)
  const [full, ...others] = task.arms
  if (full === undefined) return
  // Before its first roll an arm's request has the full texts, and at most a mark with each output's ID besides.
  const began = new Map(others.map(({ arm, captured }) => [arm.name, firstShorter(captured, full.captured)]))
  const first = Math.min(...[...began.values()].filter((index) => index >= 0))
  began.set(full.arm.name, first)
  const known = new Map<number, Float32Array>()
  const sizes = new Map<number, number>()
  for (const { arm, captured } of task.arms) {
    for (const [index, one] of captured.entries()) {
      const from = began.get(arm.name) ?? -1
      if (from < 0 || index < from) continue
      const isFull = arm.name === full.arm.name
      const old = done.get(`${arm.name} ${index}`)
      if (old !== undefined) {
        if (isFull && old.nats !== undefined) known.set(index, Float32Array.from(old.nats))
        sizes.set(index, old.full)
        continue
      }
      const whole = full.captured[index] as Captured
      const prompt = model.tokenize(one.request, true)
      if (isFull) sizes.set(index, prompt.length)
      const size = sizes.get(index) ?? model.tokenize(whole.request, true).length
      const answer = one.pieces.map((piece) => ({ part: piece.part, tokens: model.tokenize(piece.text, false) }))
      const tokens = answer.flatMap((piece) => piece.tokens)
      if (tokens.length === 0 || size + tokens.length > task.limit) continue
      const line = { arm: arm.name, answer: index, prompt: prompt.length, full: size }
      const nats = await model.nats(prompt, tokens)
      const parts = sums(answer, nats)
      const plain = known.get(index)
      if (isFull) {
        known.set(index, nats)
        add(task.file, { ...line, parts, nats: shortened(nats) })
      } else if (plain !== undefined) {
        const text = one.pieces.map((piece) => piece.text).join('')
        const ranges = onlyHidden(text, whole.request, one.request)
        const inside = within(
          tokens.map((token) => model.bytesOf(token)),
          text,
          ranges,
        )
        const hidden = { tokens: inside.length, nats: sum(inside.map((at) => nats[at] ?? 0)), fullNats: sum(inside.map((at) => plain[at] ?? 0)) }
        add(task.file, { ...line, parts, fullParts: sums(answer, plain), hidden, nats: shortened(nats) })
      }
      task.progress(arm.name, index)
    }
  }
}

/** A line as it is kept until the table is made: with the nats of each token. */
type Kept = Line & { nats?: number[] }

function add(file: string, line: Kept): void {
  appendFileSync(file, `${JSON.stringify(line)}\n`)
}

/** The lines that an earlier run has written. The rest of a truncated line is removed, and measured again. */
function doneIn(file: string): Map<string, Kept> {
  const done = new Map<string, Kept>()
  if (!existsSync(file)) return done
  const text = readFileSync(file, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole !== text) truncateSync(file, Buffer.byteLength(whole))
  for (const one of whole.split('\n')) {
    if (one === '') continue
    const line = JSON.parse(one) as Kept
    done.set(`${line.arm} ${line.answer}`, line)
  }
  return done
}

function sums(answer: readonly { part: Part; tokens: number[] }[], nats: Float32Array): Partial<Record<Part, Nats>> {
  const parts: Partial<Record<Part, Nats>> = {}
  let at = 0
  for (const { part, tokens } of answer) {
    const before = parts[part] ?? { tokens: 0, nats: 0 }
    const own = sum([...nats.subarray(at, at + tokens.length)])
    parts[part] = { tokens: before.tokens + tokens.length, nats: rounded(before.nats + own) }
    at += tokens.length
  }
  return parts
}

/** The indices of the tokens that overlap one of the ranges of the text. */
function within(pieces: readonly Buffer[], text: string, ranges: readonly Range[]): number[] {
  const marked = ranges.map(({ from, to }) => ({ from: Buffer.byteLength(text.slice(0, from)), to: Buffer.byteLength(text.slice(0, to)) }))
  const inside: number[] = []
  let at = 0
  let next = 0
  for (const [index, piece] of pieces.entries()) {
    const end = at + piece.length
    while (next < marked.length && (marked[next] as Range).to <= at) next += 1
    const range = marked[next]
    if (range !== undefined && range.from < end) inside.push(index)
    at = end
  }
  return inside
}

function shortened(nats: Float32Array): number[] {
  return [...nats].map(rounded)
}

function sum(values: readonly number[]): number {
  return rounded(values.reduce((all, value) => all + value, 0))
}

function rounded(value: number): number {
  return Number(value.toFixed(3))
}
