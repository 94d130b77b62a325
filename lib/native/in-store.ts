/** A store for one piece of work, and its paths. */
import { sep } from 'node:path'
import type { StoreOptions, StoreState } from '../../index.js'
import { Store } from './store.ts'

/** Opens a store for one piece of work. `closed` gets its last state. */
export async function inStore<T>(options: StoreOptions, work: (store: Store) => Promise<T>, closed?: (left: StoreState | undefined) => void): Promise<T> {
  const store = await Store.open(options)
  try {
    return await work(store)
  } finally {
    const left = await store.close()
    closed?.(left)
  }
}

/** A resolved path as the store has it: with slashes, on Windows too. */
export function asStored(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}
