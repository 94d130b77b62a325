/** The variables of the environment that name a store. Pi and all commands read them by these rules. */
import { addressesIn } from './node-address.ts'
import { expandHome } from './paths.ts'

/** The values of these variables. */
export interface StoreInEnv {
  /** `CONTEXT_STORE`. With a path alone it is `sqlite`; undefined where neither is set. */
  kind: 'sqlite' | 'xtdb' | 'memory' | undefined
  /** `CONTEXT_STORE_PATH`, with the user's folder in place of `~`: no shell may have read it. */
  path: string | undefined
  /** `CONTEXT_XTDB_URL`: the nodes' addresses. */
  nodes: string[]
  /** `CONTEXT_XTDB_JOURNAL`, as the path. */
  journal: string | undefined
}

/** Reads the variables; an empty one is not set. Throws a sentence for a kind of store that does not exist. */
export function storeInEnv(env: NodeJS.ProcessEnv): StoreInEnv {
  const own = env['CONTEXT_STORE'] || undefined
  if (own !== undefined && own !== 'sqlite' && own !== 'xtdb' && own !== 'memory') throw new Error(`CONTEXT_STORE is sqlite, xtdb or memory, not "${own}"`)
  const path = pathIn(env['CONTEXT_STORE_PATH'])
  return {
    kind: own ?? (path === undefined ? undefined : 'sqlite'),
    path,
    nodes: addressesIn(env['CONTEXT_XTDB_URL'] ?? ''),
    journal: pathIn(env['CONTEXT_XTDB_JOURNAL']),
  }
}

/** The sentence for a store on XTDB without an address. */
export const ADDRESS_WANTED = 'CONTEXT_STORE=xtdb needs the address of a node in CONTEXT_XTDB_URL, as http://127.0.0.1:3000'

function pathIn(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : expandHome(text)
}
