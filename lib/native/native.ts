import { sharedAddon } from '../core/index.ts'
import type { Addon } from '../core/index.ts'

/** The native module that this process uses. Importing this file throws if there is none. */
export const native: Addon = sharedAddon()
