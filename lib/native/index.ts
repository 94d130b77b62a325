/**
 * The classes over the native addon. Importing it loads the addon, or throws a sentence that says why it can't.
 * Other folders import only this file.
 */
export { DrivenSession, toolcall } from './driven.ts'
export { defaultFilesystemId } from './filesystem.ts'
export { asStored, inStore } from './in-store.ts'
export { native } from './native.ts'
export { Store } from './store.ts'
