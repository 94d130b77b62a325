/** The native classes behind this entry, named in one place. */
export {
  OutputCache,
  OutputDirectory,
  outputFileName,
  outputNames,
  outputQueryHash,
  outputTemporaryName,
  RelevanceIndex,
  RelevanceRanking,
} from '../../index.js'
