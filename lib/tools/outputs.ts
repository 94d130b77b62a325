/** Outputs of agents' tools, and what their calls are about to change. */
import type { PlannedChange } from '../../index.js'
import { crossing, sharedAddon } from '../core/index.ts'
import type { Fields } from '../core/index.ts'

/** The changes that a call would make to files; none for a tool that changes no file. */
export function changesOf(name: string, args: Fields): PlannedChange[] {
  return sharedAddon().changesOfCall(name, crossing(args, 'the arguments of a call') as unknown as string)
}

/** The kind of text that a host has written in place of a whole output; undefined if it is a real output. */
export function placeholderOf(output: string): 'cleared' | 'unchanged' | undefined {
  return sharedAddon().placeholderIn(output) ?? undefined
}

/**
 * The lines of a file that an output shows, without their numbers. Undefined if the output is anything but consecutively
 * numbered lines.
 */
export function shownLines(output: string): string | undefined {
  return sharedAddon().shownLines(output) ?? undefined
}

/** A text without the numbers of its lines. */
export function withoutLineNumbers(text: string): string {
  return sharedAddon().withoutLineNumbers(text) ?? text
}

/** An output without what its host says before it; of Cline's list of results, the one in it. */
export function outputAlone(text: string): string {
  return sharedAddon().outputAlone(text) ?? text
}
