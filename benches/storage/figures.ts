/**
 * Figures of the storage class beside the plain version of the same document, in one run. Each figure is the
 * median of several rounds, in which the two take turns. Read the ratios: absolute times are the machine's.
 */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager, type IFileSystem } from '../../lib/storage/index.ts'
import { PlainContextManager, writeDurably } from './plain.ts'

interface Storage {
  saveContext(tool: string, args: Record<string, unknown>, result: unknown, task?: number, query?: string): Promise<string>
  getAllPointers(): ReturnType<ContextManager['getAllPointers']>
  loadContexts(paths: string[]): Promise<unknown[]>
  selectRelevantContexts: ContextManager['selectRelevantContexts']
}

const ROUNDS = 7
const RESULT = `${'export function login(user: string) {\n'.repeat(55)}`

const queries = Array.from({ length: 50 }, (_, n) => ContextManager.hashQuery(`query ${n}`))
const save = (storage: Storage, n: number, result: unknown = RESULT) =>
  storage.saveContext(
    n % 3 === 0 ? 'search_code' : 'readFile',
    { path: `src/module${n % 997}/component_${n}.ts`, query: n % 7 === 0 ? 'authentication error' : 'parser state' },
    result,
    n % 40,
    queries[n % 50],
  )

const nowhere: IFileSystem = {
  mkdir: async () => undefined,
  writeFile: async () => undefined,
  readFile: async () => '',
  readdir: async () => [],
  rename: async () => undefined,
  unlink: async () => undefined,
  stat: async () => {
    throw Object.assign(new Error('nothing is kept'), { code: 'ENOENT' })
  },
}
const inMemory = {
  product: (): Storage => new ContextManager({ contextDir: '/c', fileSystem: nowhere }),
  plain: (): Storage => new PlainContextManager({ contextDir: '/c', write: async () => undefined }),
}

const memory = process.env['STORAGE_MEMORY']
if (memory === 'product' || memory === 'plain') await printMemory(inMemory[memory]())
else await printFigures()

async function printFigures(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'storage-figures-'))
  try {
    let directories = 0
    const next = async () => {
      const path = join(root, String(directories++))
      await mkdir(path)
      return path
    }
    type Pair = [() => Promise<Storage>, () => Promise<Storage>]
    const durable: Pair = [
      async () => new ContextManager({ contextDir: await next() }),
      async () => new PlainContextManager({ contextDir: await next(), write: writeDurably }),
    ]
    const undurable: Pair = [
      async () => new ContextManager({ contextDir: await next(), durability: 'process' }),
      async () => new PlainContextManager({ contextDir: await next() }),
    ]
    const oneByOne = async (storage: Storage) => {
      for (let n = 0; n < 200; n += 1) await save(storage, n)
    }
    const together = (storage: Storage) => Promise.all(Array.from({ length: 200 }, (_, n) => save(storage, n)))
    const perSecond = (ms: number) => `${Math.round(200_000 / ms)}/s`
    await figure('saves of 2 KB, durable, one by one', durable, oneByOne, perSecond)
    await figure('saves of 2 KB, durable, 200 at once', durable, together, perSecond)
    await figure('saves of 2 KB, not flushed (plain: not atomic), one by one', undurable, oneByOne, perSecond)
    await figure('saves of 2 KB, not flushed (plain: not atomic), 200 at once', undurable, together, perSecond)

    const filled = (await Promise.all(
      undurable.map(async (create) => {
        const storage = await create()
        for (let n = 0; n < 1000; n += 1) await save(storage, n)
        return storage
      }),
    )) as [Storage, Storage]
    const load = (storage: Storage) => storage.loadContexts(storage.getAllPointers().map(({ filepath }) => filepath))
    const milliseconds = (ms: number) => `${ms.toFixed(1)} ms`
    await figure('load of 1,000 outputs of 2 KB', [async () => filled[0], async () => filled[1]], load, milliseconds)

    const large = [inMemory.product(), inMemory.plain()] as const
    for (const storage of large) for (let n = 0; n < 100_000; n += 1) await save(storage, n, null)
    const rank = async (storage: Storage) => storage.selectRelevantContexts('authentication error in the parser', pointers.get(storage)!)
    const pointers = new Map(large.map((storage) => [storage, storage.getAllPointers()]))
    await figure('rank 100,000 pointers', [async () => large[0], async () => large[1]], rank, milliseconds)
    const copies = new Map(large.map((storage) => [storage, storage.getAllPointers().map((pointer) => ({ ...pointer }))]))
    const rankCopies = async (storage: Storage) => storage.selectRelevantContexts('authentication error in the parser', copies.get(storage)!)
    await figure('rank 100,000 pointers that it has no index of', [async () => large[0], async () => large[1]], rankCopies, milliseconds)

    const [product, plain] = (['product', 'plain'] as const).map(measureMemory) as [number, number]
    print('memory of 100,000 pointers', `${product.toFixed(1)} MB`, `${plain.toFixed(1)} MB`, product / plain)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

async function figure(
  name: string,
  create: [() => Promise<Storage>, () => Promise<Storage>],
  work: (storage: Storage) => Promise<unknown>,
  format: (ms: number) => string,
): Promise<void> {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const side of [0, 1] as const) {
      const storage = await create[side]()
      globalThis.gc?.()
      const start = performance.now()
      await work(storage)
      times[side].push(performance.now() - start)
    }
  }
  const [product, plain] = times.map((all) => all.toSorted((a, b) => a - b)[ROUNDS >> 1] as number) as [number, number]
  print(name, format(product), format(plain), product / plain)
}

function print(name: string, product: string, plain: string, ratio: number): void {
  console.log(`${name.padEnd(60)} ${product.padStart(10)}   plain ${plain.padStart(10)}   ${ratio.toFixed(2)}x`)
}

/** Resident memory that 100,000 saves add, in MB, measured in a separate process. */
function measureMemory(which: 'product' | 'plain'): number {
  const env = { ...process.env, STORAGE_MEMORY: which }
  const run = new URL('./run.mjs', import.meta.url).pathname
  return Number(execFileSync(process.execPath, ['--expose-gc', run], { env, encoding: 'utf8' }))
}

async function printMemory(storage: Storage): Promise<void> {
  const settled = () => {
    for (let i = 0; i < 4; i += 1) globalThis.gc?.()
    return process.memoryUsage()
  }
  for (let n = 0; n < 100; n += 1) await save(storage, n, null)
  const before = settled()
  for (let n = 0; n < 100_000; n += 1) await save(storage, n, null)
  const after = settled()
  if (process.env['STORAGE_DETAIL']) console.error({ rss: (after.rss - before.rss) / 1e6, heap: (after.heapUsed - before.heapUsed) / 1e6 })
  console.log((after.rss - before.rss) / 1e6)
}
