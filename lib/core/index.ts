/**
 * Errors, checked options, JSON for the border, private files, places of stores, names of agents, and how the addon is found.
 * Importing it loads no addon.
 * Other folders import only this file.
 */
export { GLIBC, loadAddon, sharedAddon } from './addon.ts'
export type { Addon } from './addon.ts'
export { hostNamed, hostOfSession, hostTitle, sessionOf } from './agents.ts'
export type { HostName } from './agents.ts'
export { forgetBirth, noteBirth, wasBorn } from './births.ts'
export { calling, invalid, sentenceOf, unavailable } from './errors.ts'
export { denial, isDenial, isThere, statOf } from './denial.ts'
export { fieldOf, setField } from './fields.ts'
export { folderOf, noteFolder } from './folder.ts'
export { checkWidth, crossed, crossedHistory, crossing, flattened, jsonText } from './json.ts'
export { LOOK_MS, abortable, checkedSignal, within } from './limit.ts'
export { argumentsOf, callsIn, handed, incoming, isFields, isTranslated, numberOf, recordable, resultText, textOf } from './message.ts'
export type { Block, EngineMessage, Fields, ToolCallBlock } from './message.ts'
export { areMounts, FILESYSTEM_ID_WANTED, isFilesystemId, MOUNTS_WANTED, mountsIn, mountsRefused } from './mounts.ts'
export { oncePer } from './once.ts'
export { expandHome, homeFolder, isWithin, realOf } from './paths.ts'
export { addressesIn, isAddress, shownUrl } from './node-address.ts'
export {
  checkAsOf,
  checkForgetting,
  checkHistoryPart,
  checkLimits,
  checkPart,
  checkPrune,
  checkQuery,
  checkSearch,
  checkStore,
  checkToolcall,
  known,
  list,
  shown,
} from './options.ts'
export type { Names } from './options.ts'
export { defaultStorePath, journalOf, journals, placed } from './place.ts'
export { ADDRESS_WANTED, storeInEnv } from './store-env.ts'
export type { StoreInEnv } from './store-env.ts'
export { isRunning, PrivateFile, UNFINISHED, writePrivateFile } from './private-file.ts'
export { leftovers, removeUnfinished, whileUnfinished, withFolder } from './unfinished.ts'
export type { Leftover } from './unfinished.ts'
export { ask, permitted, refusal } from './withheld.ts'
export { randomNumbers } from './random.ts'
export type { Environment } from './environment.ts'
export { isPlainSide } from './holdout.ts'
export { shared } from './shared.ts'
export { unsentSentence } from './unsent.ts'
export { Warnings } from './warnings.ts'
export { wellFormed } from './well-formed.ts'
