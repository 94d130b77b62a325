/** Processes that are killed while they write: what was acknowledged to JavaScript is there, whole. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { inStore } from '../../lib/native/in-store.ts'
import { folder, opened, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { GENEROUS, NATIVE, say, sized } from './sized.ts'

afterEach(cleanUp)

const WRITER = fileURLToPath(new URL('writer.mjs', import.meta.url))

/** Starts a writer, kills it after some acknowledgements, and gives the newest number that it said. */
async function killed(path: string, cwd: string, first: number, after: number): Promise<number> {
  const child = spawn(process.execPath, [WRITER, NATIVE, path, cwd, String(first)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onCleanUp(() => void child.kill('SIGKILL'))
  const ended = new Promise((resolve) => child.once('close', resolve))
  let newest = first - 1
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    newest = Number(line)
    if ((count += 1) === after) child.kill('SIGKILL')
  }
  await ended
  return newest
}

test(
  'a process that is killed loses nothing that it acknowledged',
  async () => {
    const runs = sized(3, 25, 200)
    let [cwd, store, acknowledged, total] = [folder(), sqlite(), 0, 0]
    for (let run = 0; run < runs; run += 1) {
      if (run % 25 === 0) {
        ;[cwd, store, total, acknowledged] = [folder(), sqlite(), total + acknowledged, 0]
      }
      // Numbers that jump about, so that the kills fall at different points.
      acknowledged = await killed(store.path, cwd, acknowledged + 1, 1 + ((run * 7) % 11))
      const manager = await opened({ cwd, store })
      const calls = Array.from({ length: acknowledged }, (_, n) => `call_${n + 1}`)
      const { sessionIndex: index } = await manager.sessionSets()
      expect(index).toEqual(expect.arrayContaining(calls))
      const chat = (await manager.get('chat:s')) as unknown as { toolcall_refs: string[]; turn_count: number }
      expect(chat.toolcall_refs.slice(0, acknowledged)).toEqual(calls)
      // One more may have become durable before its acknowledgement was said; no more than one.
      const done = chat.toolcall_refs.length
      expect(done - acknowledged).toBeLessThanOrEqual(1)
      expect(index.filter((id) => id.startsWith('call_'))).toHaveLength(done)
      // The file was never on this disk, so that opening found it deleted; its texts stay.
      const versions = await manager.history(index.find((id) => !id.startsWith('call_'))!)
      const texts = versions.flatMap(({ document }) => (typeof document.content === 'string' ? [document.content] : []))
      expect(Number(/^version (\d+)/.exec(texts.at(-1)!)![1])).toBeGreaterThanOrEqual(done)
      await manager.close()
      expect(await inStore(store, (store) => store.verify())).toEqual([])
      acknowledged = done
    }
    say(`killed through the class: ${runs} kills, ${total + acknowledged} calls, none lost`)
    expect(total + acknowledged).toBeGreaterThan(runs)
  },
  GENEROUS,
)
