/**
 * Facts about coding agents: their names, their tools, and how they show files.
 *
 * @module
 */
export { hostNamed, hostOfSession, hostTitle, sessionOf } from './host-tools/names.ts'
export type { HostName } from './host-tools/names.ts'
export { placeholderOf } from './host-tools/placeholders.ts'
export type { Placeholder } from './host-tools/placeholders.ts'
export { shownLines, withoutLineNumbers } from './host-tools/numbered.ts'
export { outputAlone, showsLines, shownBy } from './host-tools/shell.ts'
export { engineCall, hostArguments, piCall } from './host-tools/tools.ts'
export type { EngineCall } from './host-tools/tools.ts'
