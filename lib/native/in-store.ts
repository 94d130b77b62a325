/** A store for one piece of work, and its paths. */
import { sep } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { Store } from './store.ts'

/** Opens a store for one piece of work. */
export async function inStore<T>(options: StoreOptions, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await Store.open(options)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** A resolved path as the store has it: with slashes, on Windows too. */
export function asStored(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}
