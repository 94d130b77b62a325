/** The user's actions on the whole window, by command or by key. Each action returns a sentence that says what it did. */
import type { ExtensionCommandContext } from '@earendil-works/pi-coding-agent'
import type { Boundary } from './boundary.ts'
import type { Host } from './host.ts'
import { short } from './shares.ts'
import { receiptLine, showStatus } from './ui.ts'
import { POINT } from './messages.ts'

/** Switches collapsing on or off. */
export async function switchRolls(host: Host, ctx: ExtensionCommandContext, on: boolean): Promise<string> {
  if (on && host.boundary === undefined) await host.restart(ctx)
  const boundary = open(host)
  boundary.off = !on
  await keep(host, boundary)
  await showStatus(host, ctx)
  return on
    ? 'The context manager is on: outputs collapse when that pays.'
    : 'The context manager is off: nothing collapses. Outputs are still recorded, and references can still be brought back.'
}

/** Rolls that pay back later than after this many calls are asked about. */
const SOON_CALLS = 20

/** The sentence that a user is told before a roll, and the question where it is dear. */
export interface StateBefore {
  /** Says what the roll will do. */
  say(sentence: string): void
  /** Asks whether to roll anyway. */
  ask(question: string): Promise<boolean>
}

/**
 * Collapses everything stale, once the model has finished. Says before what that costs and when it has paid for itself, and
 * asks if that is late.
 */
export async function rollNow(host: Host, ctx: ExtensionCommandContext, before: StateBefore): Promise<string> {
  await ctx.waitForIdle()
  const boundary = open(host)
  const preview = await boundary.previewRoll(ctx)
  if (preview !== undefined) {
    const { paysBackAfterCalls: calls = Infinity, cost } = preview.receipt
    const what = `This roll: ${receiptLine(preview.receipt)}.`
    if (cost > 0 && calls > SOON_CALLS) {
      if (!(await before.ask(`${what} Roll anyway?`))) return 'Nothing was rolled.'
    } else before.say(what)
  }
  const receipt = await boundary.rollNow(ctx)
  if (receipt !== undefined) await keep(host, boundary)
  await showStatus(host, ctx)
  if (receipt !== undefined) return `Rolled: ${receiptLine(receipt)}.`
  const { staleTokens } = boundary.figures
  if (staleTokens === 0) return 'Nothing is old enough to collapse.'
  return `${short(staleTokens)} tokens are old enough to collapse, but the model has to see them first.`
}

/** Shows again what the last roll collapsed, once the model has finished. */
export async function undoRoll(host: Host, ctx: ExtensionCommandContext): Promise<string> {
  await ctx.waitForIdle()
  const boundary = open(host)
  const count = await boundary.undoRoll(ctx)
  if (count > 0) await keep(host, boundary)
  await showStatus(host, ctx)
  if (count === 0) return 'There is no roll to undo.'
  return `Undone: ${count} ${count === 1 ? 'message is shown as it was' : 'messages are shown as they were'} before the roll.`
}

function open(host: Host): Boundary {
  host.manager()
  return host.boundary as Boundary
}

/** Saves the state on the branch: what a command or a key changed belongs to the branch, as a turn does. */
export async function keep(host: Host, boundary: Boundary): Promise<void> {
  host.pi.appendEntry(POINT, await boundary.point())
}
