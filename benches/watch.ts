/** G8: from a save to the call of a listener in JavaScript, beside chokidar with a file of the same size. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager } from '../lib/index.ts'
import { median, notRun, print, text } from './figure.ts'

const ROUNDS = 120

const chokidar = await import('chokidar').catch(() => undefined)
if (chokidar === undefined) notRun('G8: chokidar is missing; run npm ci first')
else await measure(chokidar.watch)

async function measure(watch: typeof import('chokidar').watch): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
  const paths = ['ours', 'theirs'].map((name) => {
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'file.ts'), text(2000, 0))
    return join(root, name, 'file.ts')
  }) as [string, string]
  const manager = await ContextManager.open({
    sessionId: 'bench',
    cwd: root,
    store: { kind: 'sqlite', path: join(root, 'store', 'context.db') },
  })
  await manager.indexFile(paths[0])
  let arrived: (time: number) => void = () => {}
  manager.watch(() => arrived(performance.now()))
  const watcher = watch(paths[1])
  await new Promise<void>((resolve) => void watcher.once('ready', () => resolve()))
  watcher.on('change', () => arrived(performance.now()))

  const times: [number[], number[]] = [[], []]
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const which of [0, 1] as const) {
      const content = text(2000 + round, round)
      const event = new Promise<number>((resolve) => (arrived = resolve))
      writeFileSync(paths[which], content)
      const start = performance.now()
      times[which].push((await event) - start)
      // chokidar drops a second change of a file within 50 ms.
      await new Promise((resolve) => setTimeout(resolve, 60))
    }
  }
  print({
    figure: 'G8',
    what: 'from a save to the listener in JavaScript, the version on disk',
    ours: median(times[0]),
    peer: 'chokidar 4, which only tells the path',
    beside: median(times[1]),
    unit: 'ms',
    good: 1 / 3,
    stretch: 1 / 8,
  })
  await watcher.close()
  await manager.close()
  rmSync(root, { recursive: true })
}
