/**
 * The growth of calls with their input: `node benches/ts.mjs benches/large.ts [history|page|values|keys|discover|replay]`.
 *
 * Each line is a point of a curve: the time of the call, and the longest time for which the event loop stood still.
 * `replay` runs the built program (`npm run build:ts`).
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ContextManager } from '../lib/index.ts'

const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
let sessions = 0

function opened(kind: 'memory' | 'sqlite'): Promise<ContextManager> {
  sessions += 1
  const store = kind === 'memory' ? { kind } : { kind, path: join(root, `${sessions}.db`), durability: 'process' as const }
  return ContextManager.open({ sessionId: 'bench', cwd: root, store, watch: false })
}

/** Times a call, and prints it as a point. */
async function point(what: string, size: number, call: () => Promise<unknown>): Promise<void> {
  let [last, still] = [performance.now(), 0]
  const look = (): void => {
    const now = performance.now()
    still = Math.max(still, now - last)
    last = now
  }
  const timer = setInterval(look, 1)
  await new Promise((done) => setTimeout(done, 5))
  look()
  still = 0
  const start = performance.now()
  const outcome = await call().then(
    () => '',
    (error: { code?: string }) => `, ${error.code ?? 'an error'}`,
  )
  const took = performance.now() - start
  await new Promise((done) => setTimeout(done, 5))
  clearInterval(timer)
  const memory = Math.round(process.memoryUsage().rss / 1e6)
  console.log(`${what}, ${size}: ${took.toFixed(0)} ms, event loop still for ${still.toFixed(0)} ms, process of ${memory} MB${outcome}`)
}

async function conversation(turns: number): Promise<ContextManager> {
  const manager = await opened('sqlite')
  for (let n = 0; n < turns; n += 1) {
    await manager.appendTurn({ role: 'user', content: `question ${n} `.repeat(20) })
    await manager.appendTurn({ role: 'assistant', content: [{ type: 'text', text: `answer ${n} `.repeat(80) }] })
  }
  return manager
}

const user = (values: number): object => ({ role: 'user', content: new Array<object>(values / 2).fill({ type: 'text' }), timestamp: 1 })

const parts: Record<string, () => Promise<void>> = {
  async history() {
    for (const turns of [100, 200, 400, 1000]) {
      const manager = await conversation(turns)
      await point('the whole history of a chat, turns', turns, () => manager.history('chat:bench'))
      await manager.close()
    }
  },
  async page() {
    for (const turns of [100, 200, 400, 1000]) {
      const manager = await conversation(turns)
      const after = (await manager.point()) - 50
      await point('the last 50 versions of a chat, turns', turns, () => manager.history('chat:bench', { after, limit: 50 }))
      await manager.close()
    }
  },
  async values() {
    for (const values of [100_000, 400_000, 1_600_000]) {
      const manager = await opened('memory')
      await point('transformContext of a message, values', values, () => manager.transformContext([user(values)]))
      await point('assemble of it, values', values, () => manager.assemble())
      await manager.close()
    }
  },
  async keys() {
    for (const keys of [10_000, 100_000, 1_000_000]) {
      const manager = await opened('memory')
      const args = Object.fromEntries(Array.from({ length: keys }, (_, n) => [`k${n}`, n]))
      await point('arguments of a call, keys', keys, () => manager.recordToolcall({ id: 'c', tool: 't', args, content: '', status: 'ok' }))
      await manager.close()
    }
  },
  async discover() {
    for (const paths of [1_000, 10_000, 100_000]) {
      const manager = await opened('sqlite')
      const names = Array.from({ length: paths }, (_, n) => join(root, 'src', `${n}.ts`))
      await point('discover, paths', paths, () => manager.discover(names))
      await manager.close()
    }
  },
  async replay() {
    for (const messages of [500, 1000, 2000, 4000]) {
      const file = join(root, `${messages}.jsonl`)
      writeFileSync(file, recording(messages))
      await point('replay of short messages', messages, async () => {
        const run = spawnSync(process.execPath, [resolve('dist/cli/start.js'), 'replay', '--quiet', '--policies', 'pi,pi-context-manager', file])
        if (run.status !== 0) throw new Error(String(run.stderr))
      })
    }
  },
}

/** A session of Pi's without tool calls. */
function recording(messages: number): string {
  const at = (n: number): number => Date.UTC(2026, 0, 1) + n * 20_000
  const lines: object[] = [{ type: 'session', version: 3, id: 'bench', timestamp: new Date(at(0)).toISOString(), cwd: '/' }]
  for (let n = 0; n < messages; n += 1) {
    const text = [{ type: 'text', text: `${n % 2 === 0 ? 'question' : 'answer'} ${n}` }]
    const usage = {
      input: 10,
      output: 5,
      cacheRead: n * 8,
      cacheWrite: 8,
      totalTokens: n * 8 + 23,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    }
    const answer = { api: 'anthropic-messages', provider: 'anthropic', model: 'claude-sonnet-4-5', usage, stopReason: 'stop' }
    const message = { role: n % 2 === 0 ? 'user' : 'assistant', content: text, timestamp: at(n), ...(n % 2 === 1 && answer) }
    lines.push({ type: 'message', id: `m${n}`, parentId: n === 0 ? null : `m${n - 1}`, timestamp: new Date(at(n)).toISOString(), message })
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

const wanted = process.argv.slice(3)
for (const [name, run] of Object.entries(parts)) if (wanted.length === 0 || wanted.includes(name)) await run()
rmSync(root, { recursive: true, force: true })
