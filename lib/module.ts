/**
 * The entry `./native`: all that the addon has, found as this package finds it. The generated `index.js` would look for a
 * binary of Microsoft's compiler on Windows, and there is none.
 */
import { native } from './native.ts'

export const {
  ContextManager,
  OutputCache,
  OutputDirectory,
  RelevanceIndex,
  RelevanceRanking,
  exportStore,
  findObjects,
  findSecrets,
  forgetStore,
  importStore,
  listSessions,
  objectHistory,
  outputFileName,
  outputNames,
  outputQueryHash,
  outputTemporaryName,
  pruneStore,
  readObject,
  redactedText,
  searchStore,
  storeLimits,
  verifyStore,
} = native
