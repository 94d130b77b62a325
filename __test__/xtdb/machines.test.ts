/** One session on two machines that share a database: each journal gives back all of its past, or says that it can't. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import type { OpenOptions, Version } from '../../lib/index.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../../rig/pi.ts'
import { freshNode, tick, withoutXtdb } from '../../rig/xtdb.ts'

afterEach(cleanUp)

const missing = withoutXtdb('xtdb/machines: 1 test against a real XTDB was')

/** The part of a version that is the same on every machine. */
const shape = ({ document, validTime }: Version): object => ({ document, validTime })

/** The part of an export that is the same on every machine. */
function exported(file: string): object[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n').slice(1, -1)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>).map(({ object, position, valid_time: time }) => ({ object, position, time }))
}

test.skipIf(missing)('a session opened through two journals has all of its past on both', async () => {
  const folder = temporaryFolder('machines-')
  const node = await freshNode()
  const open = async (machine: string, sessionId = 's1'): Promise<ContextManager> => {
    const store = { kind: 'xtdb', url: node.url, journal: join(folder, machine, 'journal.db') } as const
    const options: OpenOptions = { sessionId, cwd: folder, filesystemId: 'one', store, watch: false }
    const manager = await ContextManager.open(options)
    onCleanUp(() => manager.close())
    return manager
  }

  const one = await open('one')
  const points: { point: number; times: string[]; turns: number }[] = []
  let file = ''
  for (let n = 1; n <= 12; n++) {
    writeFileSync(join(folder, 'a.txt'), `text ${n}`)
    file = (await one.indexFile('a.txt')).id
    await one.appendTurn({ role: 'user', content: `question ${n}` })
    await one.recordToolcall({ id: `c${n}`, tool: 'bash', args: { n }, content: `output ${n}`, status: 'ok' })
    const [point, times] = [await one.point(), await one.pointTimes()]
    points.push({ point, times, turns: n })
    tick(Math.max(...times.map((time) => Date.parse(time))))
  }
  await one.flush()
  const ids = [file, 'chat:s1', 'session:s1', 'c3']
  const histories = new Map<string, Version[]>()
  for (const id of ids) histories.set(id, await one.history(id))
  await one.exportSession(join(folder, 'one.jsonl'))

  // A fork on a machine that has only the latest of everything.
  const fork = await open('two', 'fork')
  for (const { point, times, turns } of [points[4]!, points[0]!, points[10]!]) {
    await fork.restore('s1', point, times)
    expect((await fork.get('chat:fork'))!['turn_count']).toBe(turns)
    expect((await fork.get(`c${turns}`))!.content).toBe(`output ${turns}`)
  }
  await fork.close()

  const two = await open('two')
  for (const id of ids) {
    const versions = histories.get(id)!
    for (const { document, validTime } of versions) expect(await two.getAsOf(id, validTime)).toEqual(document)
    expect(await two.getAsOf(id, '2001-01-01T00:00:00.000Z')).toBeNull()
    expect((await two.history(id)).map(shape)).toEqual(versions.map(shape))
  }
  await two.exportSession(join(folder, 'two.jsonl'))
  expect(exported(join(folder, 'two.jsonl'))).toEqual(exported(join(folder, 'one.jsonl')))

  // A third machine learns of the file, and then the node is away: it reports this, and denies nothing.
  const three = await open('three', 's3')
  await three.get(file)
  await node.kill9()
  const versions = histories.get(file)!
  const unavailable = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('may lack versions of') as string }
  await expect(three.getAsOf(file, versions[2]!.validTime)).rejects.toMatchObject(unavailable)
  await expect(three.history(file)).rejects.toMatchObject(unavailable)
  expect((await three.get(file))!.content).toBe('text 12')
  expect((await two.history(file)).map(shape)).toEqual(versions.map(shape))

  // Unsent writes are reported at the end.
  await three.recordToolcall({ id: 'late', tool: 'bash', args: {}, content: 'output', status: 'ok' })
  const left = await three.close()
  expect(left).toMatchObject({ kind: 'xtdb', connected: false })
  expect(left!.queued).toBeGreaterThan(0)
  expect(await three.close()).toBeUndefined()
})
