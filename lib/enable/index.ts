/** Agents that start through the gateway in every terminal, by lines in the user's own files. Other folders import only this file. */
export { Untouched } from './edited-file.ts'
export { COMMANDS, enabledParts, planDisable, planEnable } from './enable.ts'
export type { Change, EnabledCommand, EnabledPart, Plan, Refusal } from './enable.ts'
export { placeOf, shellOf } from './shells.ts'
export type { ShellName } from './shells.ts'
