/**
 * Calls and outputs of coding agents, as the engine knows them. The recognizer is in the addon (`crates/tools`); it is loaded by the
 * first call and not by importing this, so that a host without the addon works as if we were not there.
 *
 * @module
 */
export { engineCall, engineCalls, hostArguments, piCall } from './calls.ts'
export type { EngineCall, HostCall, ShownLines } from './calls.ts'
export { changesOf, outputAlone, placeholderOf, shownLines, withoutLineNumbers } from './outputs.ts'
