// Lives through sessions for a time and says, after each, what it holds: node --expose-gc life.mjs ADDON STORE CWD SECONDS
import { readdirSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const [native, path, cwd, seconds] = process.argv.slice(2)
const { ContextManager } = await import(native)

const lines = (name, count) => Array.from({ length: count }, (_, n) => `${name} line ${n}: lorem ipsum\n`).join('')
const call = (nowMs) => ({
  model: 'm',
  prices: { input: 1, cacheRead: 0.1, cacheWrite: 1.25 },
  contextWindow: 200_000,
  cacheTtlMs: 300_000,
  nowMs,
  systemTokens: 1_000,
  onlyAtUserTurn: false,
  atUserTurn: true,
  rolls: true,
})

/** A session with everything that a harness does in one. */
async function session(number) {
  const manager = await ContextManager.open({
    sessionId: `s${number}`,
    cwd,
    store: { kind: 'sqlite', path, durability: 'process' },
    filesystemId: 'test-filesystem',
  })
  manager.watch(() => {})
  let now = Date.now()
  for (let turn = 0; turn < 12; turn += 1) {
    const user = { key: `u${turn}`, message: { role: 'user', content: `question ${turn}` } }
    await manager.advance([user], call((now += 1_000)))
    const made = [0, 1, 2].map((n) => ({ id: `s${number}_${turn}_${n}`, text: lines(`${turn} ${n}`, n === 2 ? 800 : 60) }))
    const answer = {
      role: 'assistant',
      timestamp: (now += 1_000),
      content: made.map(({ id }) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: 'echo' } })),
    }
    const results = []
    for (const { id, text } of made) {
      const { header = '' } = await manager.receive({ id, tool: 'bash', args: { command: 'echo' }, content: text, status: 'ok' })
      const content = [{ type: 'text', text: `${header}\n${text}` }]
      results.push({ key: id, message: { role: 'toolResult', toolCallId: id, toolName: 'bash', content } })
    }
    await manager.advance([{ key: `a${turn}`, message: answer }, ...results], call((now += 1_000)))
    const file = join(cwd, `f${turn}`)
    writeFileSync(file, lines(`${number} ${turn}`, 40))
    const { id } = await manager.indexFile(file)
    writeFileSync(file, lines(`${number} ${turn} again`, 40))
    await manager.flush()
    await manager.activate(made[0].id)
    await manager.deactivate(id)
    // Not the file's: that grows with each session, and so would what is held while it is read.
    await manager.history(made[0].id).then((versions) => versions.length)
    await manager.search('lorem', { limit: 5, sessionId: `s${number}` })
    if (turn % 4 === 3) {
      await manager.rollNow(call(now))
      await manager.undoRoll()
    }
    await manager.indexFile('missing').catch(() => {})
  }
  await manager.assemble()
  // One in ten is left to the garbage collector.
  if (number % 10 !== 9) await manager.close()
}

const end = Date.now() + Number(seconds) * 1_000
for (let number = 0; number < 8 || Date.now() < end; number += 1) {
  await session(number)
  // Unreachable objects are collected, and the effects of that are complete, before anything is counted.
  for (let turn = 0; turn < 3; turn += 1) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const descriptors = readdirSync('/proc/self/fd').length
  const threads = readdirSync('/proc/self/task').length
  writeSync(1, `${JSON.stringify({ rss: process.memoryUsage.rss(), descriptors, threads })}\n`)
}
