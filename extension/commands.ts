/** The person's command: `/context`, `/context on`, `off`, `roll` and `undo`. */
import type { ExtensionAPI, ExtensionCommandContext } from '@earendil-works/pi-coding-agent'
import type { Boundary } from './boundary.ts'
import { sentence, tell } from './guard.ts'
import type { Host } from './host.ts'
import { keep } from './keep.ts'
import { showPanel } from './panel.ts'
import { makeReport } from './report.ts'
import { receiptLine, reportLines, showStatus } from './ui.ts'

type Action = (host: Host, ctx: ExtensionCommandContext) => Promise<void>

const ACTIONS: Record<string, { does: string; run: Action }> = {
  on: { does: 'let outputs collapse where that pays', run: (host, ctx) => turn(host, ctx, true) },
  off: {
    does: 'let nothing collapse any more; what has collapsed stays retrievable',
    run: (host, ctx) => turn(host, ctx, false),
  },
  roll: { does: 'collapse now all that is stale', run: roll },
  undo: { does: 'show again what the last roll collapsed', run: undo },
}

/** Registers `/context`. */
export function registerCommand(pi: ExtensionAPI, host: Host): void {
  pi.registerCommand('context', {
    description: 'What fills the context window; on, off, roll, undo',
    getArgumentCompletions: (prefix) =>
      Object.entries(ACTIONS)
        .filter(([name]) => name.startsWith(prefix.trim()))
        .map(([name, { does }]) => ({ value: name, label: name, description: does })),
    async handler(args, ctx) {
      const name = args.trim()
      const action = name === '' ? show : ACTIONS[name]?.run
      if (action === undefined) {
        tell(ctx, `/context takes ${Object.keys(ACTIONS).join(', ')}, or nothing; not "${name}".`)
        return
      }
      try {
        await action(host, ctx)
      } catch (error) {
        tell(ctx, `/context ${name}: ${sentence(error)}`.trim(), 'error')
      }
    },
  })
}

async function show(host: Host, ctx: ExtensionCommandContext): Promise<void> {
  const report = await makeReport(host, ctx)
  if (ctx.mode === 'tui') await showPanel(host, ctx, report)
  else tell(ctx, reportLines(report).join('\n'), 'info')
}

async function turn(host: Host, ctx: ExtensionCommandContext, on: boolean): Promise<void> {
  if (on && host.boundary === undefined) await host.restart(ctx)
  const boundary = open(host)
  boundary.off = !on
  await keep(host, boundary)
  await showStatus(host, ctx)
  const sentence = on
    ? 'The context manager is on: outputs collapse where that pays.'
    : 'The context manager is off: nothing collapses any more. Outputs are still recorded, and references can be activated.'
  tell(ctx, sentence, 'info')
}

async function roll(host: Host, ctx: ExtensionCommandContext): Promise<void> {
  await ctx.waitForIdle()
  const boundary = open(host)
  const receipt = await boundary.rollNow(ctx)
  if (receipt !== undefined) await keep(host, boundary)
  await showStatus(host, ctx)
  tell(ctx, receipt === undefined ? 'Nothing is stale.' : `Rolled: ${receiptLine(receipt)}.`, 'info')
}

async function undo(host: Host, ctx: ExtensionCommandContext): Promise<void> {
  await ctx.waitForIdle()
  const boundary = open(host)
  const count = await boundary.undoRoll(ctx)
  if (count > 0) await keep(host, boundary)
  await showStatus(host, ctx)
  tell(
    ctx,
    count === 0 ? 'There is no roll to take back.' : `Shown in full again: ${count} messages.`,
    'info',
  )
}

function open(host: Host): Boundary {
  host.manager()
  return host.boundary as Boundary
}
