/** Recorded sessions of any agent, read alike, and what their answers were charged. Other folders import only this file. */
export { blocksOf, Calls, systemBlock, textBlock, unitsOf } from './blocks.ts'
export type { ReplayBlock } from './blocks.ts'
export { Files, replacementsOf } from './files.ts'
export type { FileEvent } from './files.ts'
export { jsonLines } from './lines.ts'
export { allSessionFiles, idInName, openAny, openRecording, piSessionFolder, sessionFiles } from './open.ts'
export { placeInDatabase } from './opencode-store.ts'
export { callIn, costOf, isFirst, SavedSteps } from './paid.ts'
export type { Charged, PaidCall } from './paid.ts'
export { knownPrices, mended, promptCost, ratioPrices } from './prices.ts'
export type { Prices } from './prices.ts'
export { callsOf, isCall, isSent, keysShown, LeftOut, modelOf, NotReplayable, programTitle, Recording, textOf } from './recording.ts'
export type {
  BranchStep,
  ContentBlock,
  EditStep,
  Format,
  Message,
  Problem,
  RecordedEntry,
  RecordedUsage,
  Saved,
  Step,
} from './recording.ts'
