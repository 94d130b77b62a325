/** The command line program. Other folders import only this file. */
export { optionsOf, parse } from './replay-options.ts'
