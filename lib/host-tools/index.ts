/**
 * Facts about coding agents: their names, their tools, and how they show files.
 *
 * @module
 */
export { hostNamed, hostOfSession, hostTitle, sessionOf } from './names.ts'
export type { HostName } from './names.ts'
export { placeholderOf } from './placeholders.ts'
export type { Placeholder } from './placeholders.ts'
export { shownLines, withoutLineNumbers } from './numbered.ts'
export { outputAlone, showsLines, shownBy } from './shell.ts'
export { engineCall, hostArguments, piCall } from './tools.ts'
export type { EngineCall } from './tools.ts'
export { changesOf } from './changes.ts'
export type { FileChange } from './changes.ts'
