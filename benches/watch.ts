/**
 * G8: from a save to the call of a listener in JavaScript, beside chokidar with a file of the same size. Like chokidar's, the first
 * listener gets the path; the second one is called once the version is on the disk.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager } from '../lib/index.ts'
import { median, notRun, print, rounds, text } from './figure.ts'

const ROUNDS = rounds(120)

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
  let stored: (time: number) => void = () => {}
  manager.watchTouches(() => arrived(performance.now()))
  manager.watch(() => stored(performance.now()))
  const watcher = watch(paths[1])
  await new Promise<void>((resolve) => void watcher.once('ready', () => resolve()))
  watcher.on('change', () => arrived(performance.now()))

  const [ours, theirs, versions]: [number[], number[], number[]] = [[], [], []]
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const path of paths) {
      const content = text(2000 + round, round)
      const event = new Promise<number>((resolve) => (arrived = resolve))
      const version = new Promise<number>((resolve) => (stored = resolve))
      writeFileSync(path, content)
      const start = performance.now()
      if (path === paths[1]) theirs.push((await event) - start)
      else {
        ours.push((await event) - start)
        versions.push((await version) - start)
      }
      // chokidar drops a second change of a file within 50 ms.
      await new Promise((resolve) => setTimeout(resolve, 60))
    }
  }
  const figure = { figure: 'G8', peer: 'chokidar 4', beside: median(theirs), unit: 'ms' }
  const what = 'from a save to the listener in JavaScript'
  print({ ...figure, what, ours: median(ours), good: 1 / 3, stretch: 1 / 8 })
  print({ ...figure, what: 'from a save to the listener of its version on disk', ours: median(versions) })
  await watcher.close()
  await manager.close()
  rmSync(root, { recursive: true })
}
