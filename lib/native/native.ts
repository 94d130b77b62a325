import { sharedAddon } from './addon.ts'
import type { Addon } from './addon.ts'

/** The native module that this process uses. Importing this file throws if there is none. */
export const native: Addon = sharedAddon()
