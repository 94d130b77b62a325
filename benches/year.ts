/**
 * A store's size after a year: each recorded session of a folder taken in as a harness hands it over, round after round,
 * with one line in a hundred of the files that it reads changed in between.
 *
 *     CONTEXT_SESSIONS=folder node benches/ts.mjs benches/year.ts [rounds]
 *
 * Bytes taken in are those of all texts that were handed over: messages, arguments and results, also where a text comes
 * again. A file's text counts with the result that shows it and not a second time.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Projection } from '../lib/projection/index.ts'
import { ContextManager } from '../lib/index.ts'
import { callsOf, isSent, openRecording, sessionFiles } from '../lib/recordings/index.ts'
import type { Message } from '../lib/recordings/index.ts'
import { print } from './figure.ts'

const sessions = process.env['CONTEXT_SESSIONS']
if (sessions === undefined) throw new Error('CONTEXT_SESSIONS names a folder of recorded sessions')
const rounds = Number(process.argv[3] ?? 30)
const root = realpathSync(mkdtempSync(join(process.env['YEAR_PLACE'] ?? tmpdir(), 'year-')))
const store = join(root, 'store', 'context.db')

/** True if a line was changed in this round, so that changes add up over the rounds. */
function changed(line: number, path: string, round: number): boolean {
  let hash = round * 2_654_435_761 + line * 40_503
  for (let at = 0; at < path.length; at += 1) hash = (Math.imul(hash, 31) + path.charCodeAt(at)) >>> 0
  return (hash >>> 8) % 100 === 0
}

function edited(text: string, path: string, round: number): string {
  const lines = text.split('\n')
  for (let past = 1; past <= round; past += 1) {
    for (const [at, line] of lines.entries()) if (changed(at, path, past)) lines[at] = `${line} // ${past}`
  }
  return lines.join('\n')
}

function handedOver(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, one) => sum + handedOver(one), 0)
}

let takenIn = 0
const perRound: number[] = []
const files: string[] = []
for await (const file of sessionFiles(sessions)) if (!file.includes('training')) files.push(file)
const seconds = performance.now()
for (let round = 0; round < rounds; round += 1) {
  for (const [number, file] of files.entries()) {
    const recording = await openRecording(file)
    const messages: Message[] = []
    for await (const step of recording.steps(() => {})) {
      if (step.kind === 'message' && isSent(step.entry.message)) messages.push({ ...step.entry.message, timestamp: step.entry.at })
    }
    const cwd = join(root, `project-${number}`)
    mkdirSync(cwd, { recursive: true })
    const paths = new Map<string, string>()
    const manager = await ContextManager.open({
      sessionId: `session-${round}-${number}`,
      cwd,
      store: { kind: 'sqlite', path: store, durability: 'process' },
      filesystemId: 'year',
      watch: false,
    })
    const projection = new Projection(manager, {
      model: { contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25, cacheTtlMs: 1e12 },
      systemTokens: 1_000,
    })
    const known: Message[] = []
    for (const [index, message] of messages.entries()) {
      for (const call of callsOf(message)) {
        // Providers give each call its own ID.
        call['id'] = `${String(call['id'])}-${round}`
        const args = (call['arguments'] ?? {}) as Record<string, unknown>
        const path = args['path'] ?? args['file_path']
        if (typeof path !== 'string') continue
        const local = join(cwd, path.replace(/^.*\/(workspaces?|Work)\//, ''))
        if (args['path'] !== undefined) args['path'] = local
        else args['file_path'] = local
        if (/read/i.test(String(call['name'])) && args['offset'] === undefined) paths.set(String(call['id']), local)
      }
      if (message['toolCallId'] !== undefined) message['toolCallId'] = `${String(message['toolCallId'])}-${round}`
      const id = String(message['toolCallId'] ?? '')
      const read = paths.get(id)
      const content = message['content']
      if (read !== undefined && Array.isArray(content)) {
        for (const block of content as { type?: string; text?: string }[]) {
          if (block.type !== 'text' || block.text === undefined) continue
          block.text = edited(block.text, read, round)
          mkdirSync(dirname(read), { recursive: true })
          writeFileSync(read, block.text)
        }
      }
      takenIn += handedOver(message['content'])
      known.push(message)
      if (index % 20 === 19) await projection.transform([...known])
    }
    await projection.transform(known)
    await manager.flush()
    await manager.close()
  }
  perRound.push(statSync(store).size)
  process.stderr.write(`round ${round + 1}: ${(takenIn / 1e6).toFixed(1)} MB taken in, ${(statSync(store).size / 1e6).toFixed(1)} MB on disk\n`)
}
print({
  figure: 'size',
  what: `disk of ${files.length} sessions taken in ${rounds} times`,
  ours: (perRound.at(-1) ?? 0) / 1e6,
  peer: 'the bytes taken in',
  beside: takenIn / 1e6,
  unit: 'MB',
  good: 0.5,
  stretch: 0.25,
  note: `${((performance.now() - seconds) / 1000).toFixed(0)} s`,
})
if (process.env['YEAR_PLACE'] === undefined) rmSync(root, { recursive: true })
