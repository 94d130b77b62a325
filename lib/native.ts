// The addon, loaded once. Two copies of the package in one process would open the same SQLite file with two
// copies of SQLite, and closing one drops the other's POSIX locks; so the first copy serves all.
import { loadAddon } from './addon.ts'
import type { Addon } from './addon.ts'

const KEY = Symbol.for('pi-context-manager.native')
const shared = globalThis as { [KEY]?: Addon }

/** The native module that this process uses. */
export const native: Addon = (shared[KEY] ??= loadAddon())
