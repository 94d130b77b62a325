/**
 * The projection without Pi: what a call costs at 1,000, 3,000 and 10,000 messages, and how far its count of tokens is
 * from what providers have reported in recorded sessions (the folder or file that CONTEXT_SESSIONS names).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { IncomingMessage, ModelCall } from '../index.js'
import { Projection } from '../lib/projection/index.ts'
import { ContextManager } from '../lib/index.ts'
import { isCall, isSent, openRecording, sessionFiles } from '../lib/recordings/index.ts'
import { isOnce, median, notRun, percentile, print, rounds, settled, text } from './figure.ts'

const CALL: ModelCall = {
  model: 'm',
  prices: { input: 1, cacheRead: 0.1, cacheWrite: 1.25 },
  contextWindow: 1_000_000,
  cacheTtlMs: 300_000,
  nowMs: 0,
  systemTokens: 0,
  onlyAtUserTurn: false,
  atUserTurn: false,
  rolls: false,
}

await atLength()
await counted()

/** The cost of a call with two new messages, whatever came before, and the time for which it holds the event loop. */
async function atLength(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
  const store = { kind: 'sqlite' as const, path: join(root, 'store', 'context.db'), durability: 'process' as const }
  const open = (): Promise<ContextManager> => ContextManager.open({ sessionId: 'bench', cwd: root, store, watch: false })
  const manager = await open()
  const projection = new Projection(manager)
  const messages: object[] = [{ role: 'user', content: 'go', timestamp: 0 }]
  const add = (): void => {
    const id = `call_${messages.length}`
    const call = { type: 'toolCall', id, name: 'search', arguments: { pattern: id } }
    messages.push({ role: 'assistant', content: [call], timestamp: messages.length })
    const content = [{ type: 'text', text: text(1500, messages.length) }]
    messages.push({ role: 'toolResult', toolCallId: id, toolName: 'search', content, timestamp: messages.length })
  }
  let first: number | undefined
  for (const length of isOnce() ? [100, 1_000] : [100, 1_000, 3_000, 10_000]) {
    while (messages.length < length) add()
    await projection.transform([...messages])
    const own: number[] = []
    const plain: number[] = []
    const held: number[] = []
    for (let round = 0; round < rounds(120); round += 1) {
      add()
      const given = [...messages]
      const [time, longest] = await watched(() => projection.transform(given))
      own.push(time)
      held.push(longest)
      const start = performance.now()
      // A host without us hands its messages to the provider: it copies the array and writes it as JSON.
      if (JSON.stringify([...given]).length < length) throw new Error('nothing was written')
      plain.push(performance.now() - start)
    }
    // The store is still busy with what came before when the first ones are measured.
    const here = { own: settled(own, 40), plain: settled(plain, 40), held: settled(held, 40) }
    first ??= here.own
    const note = `holds the event loop for ${here.held.toFixed(2)} ms; as a share of plain pass-through ${(here.own / here.plain).toFixed(3)}`
    if (length === 100) continue
    print({
      figure: 'transform',
      what: `transformContext at ${length} messages, 2 of them new`,
      ours: here.own,
      peer: 'at 100 messages',
      beside: first,
      unit: 'ms',
      good: 1.5,
      stretch: 1.1,
      note,
    })
    print({
      figure: 'transform',
      what: `the same at ${length} messages`,
      ours: here.own,
      peer: 'plain pass-through: the array copied and written as JSON',
      beside: here.plain,
      unit: 'ms',
      good: 1,
      stretch: 0.2,
    })
  }
  await manager.close()
  const resumed = await open()
  const again = new Projection(resumed)
  const given = [...messages]
  const used = process.cpuUsage()
  const [time, longest] = await watched(() => again.transform(given))
  const { user, system } = process.cpuUsage(used)
  const start = performance.now()
  JSON.stringify(given)
  print({
    figure: 'transform',
    what: `the first call of a resumed session of ${given.length} messages; holds the event loop for ${longest.toFixed(0)} ms`,
    ours: time,
    peer: 'plain pass-through',
    beside: performance.now() - start,
    unit: 'ms',
    note: `${((user + system) / 1000).toFixed(0)} ms of processor time in all threads`,
  })
  await resumed.close()
  rmSync(root, { recursive: true })
}

/** The time that the work takes, and the longest time for which nothing else could run meanwhile. */
async function watched(work: () => Promise<unknown>): Promise<[time: number, longest: number]> {
  let [last, longest, isOver] = [performance.now(), 0, false]
  const look = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  const start = performance.now()
  await work()
  const end = performance.now()
  isOver = true
  return [end - start, Math.max(longest, end - last)]
}

/** The error of the count for each answer of the recorded sessions that has a usage. */
async function counted(): Promise<void> {
  const folder = process.env['CONTEXT_SESSIONS']
  if (folder === undefined || folder === '') {
    return notRun('tokens: CONTEXT_SESSIONS names no folder of recorded sessions')
  }
  const corrected: number[] = []
  const plain: number[] = []
  for await (const file of sessionFiles(folder)) {
    const { own, estimate } = await errorsOf(file)
    corrected.push(...own)
    plain.push(...estimate)
  }
  print({
    figure: 'tokens',
    what: 'error of contextTokens against reported usage, median',
    ours: median(corrected) * 100,
    peer: 'error of characters / 4',
    beside: median(plain) * 100,
    unit: '%',
    good: 1,
    stretch: 0.5,
    note: `${corrected.length} answers; p95 ${(percentile(corrected, 0.95) * 100).toFixed(1)} %`,
  })
}

/** The shares by which the corrected and the plain count are off at each answer of one session. */
async function errorsOf(file: string): Promise<{ own: number[]; estimate: number[] }> {
  const recording = await openRecording(file)
  const manager = await ContextManager.open({
    sessionId: 'bench',
    cwd: recording.origin.cwd,
    store: { kind: 'memory' },
    filesystemId: 'a recording',
    mounts: [{ agentPrefix: '/', canonicalPrefix: '/', filesystemId: 'a recording' }],
    watchUnmapped: false,
    watch: false,
  })
  const [own, estimate]: [number[], number[]] = [[], []]
  let waiting: IncomingMessage[] = []
  let systemTokens: number | undefined
  let characters = 0
  for await (const step of recording.steps(() => {})) {
    if (step.kind !== 'message') break
    const { key, message } = step.entry
    if (isCall(message) && message.usage !== undefined) {
      const { input, cacheRead, cacheWrite } = message.usage
      const reported = input + cacheRead + cacheWrite
      // System prompt and tools are not in the recording: the first request says what they are.
      const call = { ...CALL, model: message.model ?? 'm', systemTokens: systemTokens ?? 0, nowMs: step.entry.at }
      const { contextTokens } = await manager.advance(waiting, call)
      waiting = []
      if (systemTokens === undefined) systemTokens = Math.max(0, reported - Math.round(characters / 4))
      else if (reported > 0) {
        own.push(Math.abs(contextTokens - reported) / reported)
        estimate.push(Math.abs(systemTokens + characters / 4 - reported) / reported)
      }
    }
    if (!isSent(message)) continue
    characters += JSON.stringify(message.content ?? '').length
    waiting.push({ key, message })
  }
  await manager.close()
  return { own, estimate }
}
