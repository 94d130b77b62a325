/**
 * The lines of ours that the model reads, read back and written. Their grammar is in the addon (`crates/lines`), and nowhere here; it is
 * loaded by the first call and not by importing this.
 *
 * @module
 */
export {
  activeHeading,
  callInMark,
  headerLine,
  headerOf,
  hitLine,
  hitOf,
  isBegun,
  isPointed,
  isReference,
  nameInPath,
  namesIn,
  pointedText,
  pointerTo,
  poolLineOf,
  referenceOf,
} from './lines.ts'
