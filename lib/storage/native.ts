/** The native classes and functions behind this entry, named in one place. */
import type * as addon from '../../index.js'
import { native } from '../native.ts'

export const {
  OutputCache,
  OutputDirectory,
  outputFileName,
  outputNames,
  outputQueryHash,
  outputTemporaryName,
  RelevanceIndex,
  RelevanceRanking,
} = native

/** An instance of the class. */
export type OutputCache = addon.OutputCache
