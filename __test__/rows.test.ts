/** The sample of rows that CI takes of large tables: over some commits, each row has its turn. */
import { expect, test, vi } from 'vitest'

/** The module, as it is where these variables are set. */
async function load(rows: string | undefined): Promise<typeof import('./rows.ts')> {
  vi.resetModules()
  vi.stubEnv('CONTEXT_NAMED', undefined)
  vi.stubEnv('CONTEXT_ROWS', rows)
  const loaded = await import('./rows.ts')
  vi.unstubAllEnvs()
  return loaded
}

const table = (length: number): number[] => Array.from({ length }, (_, n) => n)

test.each([
  [12, 3],
  [7, 3],
  [5, 4],
  [2, 1],
])('of %i rows, %i run in each commit, and all in some', async (length, count) => {
  const ran = new Set<number>()
  for (let commit = 0; commit < length; commit += 1) {
    const { some } = await load(String(commit))
    const rows = some(table(length), count)
    expect(new Set(rows).size).toBe(count)
    expect(rows).toEqual(rows.toSorted((left, right) => left - right))
    for (const row of rows) ran.add(row)
  }
  expect(ran.size).toBe(length)
})

test('all rows run if there are few, or if all are asked for', async () => {
  expect((await load(undefined)).some(table(3), 3)).toEqual(table(3))
  expect((await load('all')).some(table(9), 3)).toEqual(table(9))
})

test('the runs of an inner table take different rows', async () => {
  const { some } = await load('4')
  expect(some(table(9), 3, 1)).not.toEqual(some(table(9), 3, 0))
})
