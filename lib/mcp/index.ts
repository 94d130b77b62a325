/** The read-only MCP server. Other folders import only this file. */
export { serverOf } from './server.ts'
export { LimitedStore } from './store.ts'
export type { ClientPaths } from './reach.ts'
export { unanswered } from './unanswered.ts'
