/** Words, numbers, tables, charts and colours that screens and pages share. Other folders import only this file. */
export { bounded, changedLines } from './changed-lines.ts'
export { bars, escape, lineChart, prose, timeline, toolClass } from './chart.ts'
export { columns, fitted, middleCut, widthOf, wrapped } from './columns.ts'
export { dayOf } from './day.ts'
export { dollars } from './dollars.ts'
export { heldStatus, heldText } from './held-back.ts'
export type { Held } from './held-back.ts'
export { lifetimeText } from './lifetime.ts'
export type { LifetimeChoice } from './lifetime.ts'
export { LARGE_BYTES, shortened, shortName, size, subject, when } from './names.ts'
export { percent } from './percent.ts'
export { needReplaceable, writePrivately } from './private.ts'
export { changeLines, changesByKind, requestChanges, sizes } from './request-changes.ts'
export type { ComparedMessage, PartChange, RequestChanges } from './request-changes.ts'
export { accountText, compared, difference, paidText, savingCell, savingText, shareCell, shareText } from './saving.ts'
export type { Savings } from './saving.ts'
export { STYLE } from './style.ts'
export { suggestion } from './suggest.ts'
export {
  clearBar,
  counted,
  countOf,
  NotFound,
  numberOf,
  out,
  painted,
  plain,
  Progress,
  reasonOf,
  shown,
  showsColours,
  showsLinks,
  tell,
  tellCommand,
  UsageError,
} from './terminal.ts'
export { tokens } from './tokens.ts'
export { ROLL_REASONS } from './roll-reasons.ts'
