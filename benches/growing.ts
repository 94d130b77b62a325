/**
 * The space of a growing log: a session reads it once, or again every second, or only names it in a shell command, while another
 * program appends a line every few milliseconds. Prints the store's size beside the final size of the log.
 *
 *     node benches/ts.mjs benches/growing.ts [seconds]
 */
import { appendFileSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ContextManager } from '../lib/index.ts'
import { print, text } from './figure.ts'

const seconds = Number(process.argv[3] ?? 60)
const LINE_BYTES = 80
const START_BYTES = 100_000

for (const [how, everyMs] of [
  ['read once', Infinity],
  ['read every 10 s', 10_000],
  ['read every second', 1_000],
  ['named every second', 1_000],
] as const) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'growing-')))
  const [log, path] = [join(folder, 'build.log'), join(folder, 'store', 'context.db')]
  writeFileSync(log, text(START_BYTES, 1))
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path } })
  const read = async (turn: number): Promise<void> => {
    await manager.appendTurn({ role: 'user', content: `look ${turn}` })
    if (how.startsWith('read')) await manager.indexFile('build.log')
    else await manager.recordToolcall({ id: `c${turn}`, tool: 'bash', args: { command: 'tail -1 build.log' }, content: 'a line', status: 'ok' })
  }
  await read(0)
  const start = performance.now()
  let [lines, turns] = [0, 1]
  while (performance.now() - start < seconds * 1000) {
    lines += 1
    appendFileSync(log, `${new Date().toISOString()} ${text(LINE_BYTES, lines).replaceAll('\n', ' ')}\n`)
    if (performance.now() - start > turns * everyMs) await read(turns++)
    await pause(5)
  }
  const [file] = how.startsWith('read') ? [await manager.indexFile('build.log')] : await manager.discover(['build.log'])
  const versions = await manager.history(file!.id)
  await manager.close()
  const [ours, beside] = [statSync(path).size, statSync(log).size]
  const note = `${lines} lines appended, ${versions.length} versions, ${turns} reads`
  print({
    figure: 'growing',
    what: `a log for ${seconds} s, ${how}`,
    ours: ours / 1000,
    peer: 'its final size',
    beside: beside / 1000,
    unit: 'kB',
    good: 2,
    note,
  })
  rmSync(folder, { recursive: true })
}
