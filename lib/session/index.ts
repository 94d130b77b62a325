/** The class that users open a session with. Other folders import only this file. */
export { ContextManager } from './manager.ts'
export type { OpenOptions } from './opening.ts'
