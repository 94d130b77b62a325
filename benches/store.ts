/** G3 from JavaScript: a new version of a 2 KB file, acknowledged, beside appending 4 KB to a file and syncing it. */
import { fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager } from '../lib/index.ts'
import { print, rounds, settled, text, timed } from './figure.ts'

const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
const manager = await ContextManager.open({
  sessionId: 'bench',
  cwd: root,
  store: { kind: 'sqlite', path: join(root, 'store', 'context.db') },
  watch: false,
})
const log = openSync(join(root, 'log'), 'w')
const ours: number[] = []
const beside: number[] = []
const way: number[] = []
for (let round = 0; round < rounds(500); round += 1) {
  const bytes = Buffer.from(text(2048, round))
  const line = text(4096, round)
  beside.push(
    await timed(() => {
      writeSync(log, line)
      fsyncSync(log)
    }),
  )
  ours.push(await timed(() => manager.indexWritten(join(root, `${round % 50}.ts`), bytes)))
  // Nothing is left to settle: this is the way to a thread of ours and back.
  way.push(await timed(() => manager.settle()))
}
print({
  figure: 'G3',
  what: 'the same from JavaScript (indexWritten)',
  // The first ones make the objects.
  ours: settled(ours, 100),
  peer: 'append 4 KB + fsync',
  beside: settled(beside, 100),
  unit: 'ms',
  good: 2,
  stretch: 1.5,
  note: `${settled(way, 100).toFixed(3)} ms of it the way to another thread and back`,
})
await manager.close()
rmSync(root, { recursive: true })
