/**
 * The classes and functions behind this entry point: the native ones, or those of `plain.ts` if the native part is
 * missing.
 */
import type * as addon from '../../index.js'
import { sharedAddon } from '../addon.ts'
import type { Addon } from '../addon.ts'
import * as plain from './plain.ts'

const native = found()

export const { OutputCache, outputFileName, outputNames, outputQueryHash, outputTemporaryName, RelevanceIndex, RelevanceRanking } =
  native ?? plain

/** The native file access; undefined without the native part. */
export const OutputDirectory: Addon['OutputDirectory'] | undefined = native?.OutputDirectory

/** An instance of the class. */
export type OutputCache = Pick<addon.OutputCache, 'put' | 'get' | 'remove' | 'clear' | 'bytes'>

function found(): Addon | undefined {
  try {
    return sharedAddon()
  } catch {
    // The main entry point, which needs it, says what is missing.
    return undefined
  }
}
