/** The user's commands: `/context`, and `/context` with `on`, `off`, `roll`, `undo`, `why` or `seen`. */
import type { ExtensionAPI, ExtensionCommandContext } from '@earendil-works/pi-coding-agent'
import { sentenceOf } from '../lib/core/index.ts'
import { rollNow, switchRolls, undoRoll } from './actions.ts'
import type { StateBefore } from './actions.ts'
import { tell } from './guard.ts'
import type { Host } from './host.ts'
import { showPanel } from './panel.ts'
import { makeReport } from './report.ts'
import { seen } from './seen.ts'
import { reportLines } from './ui.ts'
import { why } from './why.ts'

/** Returns a sentence for the user. */
type Action = (host: Host, ctx: ExtensionCommandContext) => Promise<string>

const ACTIONS: Record<string, { does: string; run: Action }> = {
  on: { does: 'let outputs collapse when that pays', run: (host, ctx) => switchRolls(host, ctx, true) },
  off: {
    does: 'collapse nothing more; references can still be brought back',
    run: (host, ctx) => switchRolls(host, ctx, false),
  },
  roll: { does: 'collapse everything that is old enough now', run: (host, ctx) => rollNow(host, ctx, before(ctx)) },
  undo: { does: 'show what the last roll collapsed as it was before', run: undoRoll },
  why: { does: 'what broke the prompt cache at the last calls, and what that cost', run: why },
  seen: { does: 'what the model sees in place of what Pi wrote: replaced, shortened, removed, added', run: seen },
}

/** A notice before the roll, and Pi's own question. Without an interface, the command itself is the answer. */
function before(ctx: ExtensionCommandContext): StateBefore {
  return {
    say: (sentence) => tell(ctx, sentence, 'info'),
    ask: async (question) => !ctx.hasUI || (await ctx.ui.confirm('Roll', question)),
  }
}

/** Registers `/context`. */
export function registerCommand(pi: ExtensionAPI, host: Host): void {
  pi.registerCommand('context', {
    description: 'What fills the context window and what was saved; on, off, roll, undo, why, seen',
    getArgumentCompletions: (prefix) => {
      // Enter must run a complete word and not complete it again.
      if (Object.hasOwn(ACTIONS, prefix)) return null
      return Object.entries(ACTIONS)
        .filter(([name]) => name.startsWith(prefix.trim()))
        .map(([name, { does }]) => ({ value: name, label: name, description: does }))
    },
    async handler(args, ctx) {
      const name = args.trim()
      const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
      if (name !== '' && action === undefined) {
        tell(ctx, `/context takes ${Object.keys(ACTIONS).join(', ')}, or nothing; not "${name}".`)
        return
      }
      try {
        if (action === undefined) await show(host, ctx)
        else tell(ctx, await action.run(host, ctx), 'info')
      } catch (error) {
        const why = sentenceOf(error)
        // A start that has failed just now has been told.
        if (name !== 'on' || why !== host.failure) tell(ctx, `${`/context ${name}`.trim()}: ${why}`, 'error')
      }
    },
  })
}

async function show(host: Host, ctx: ExtensionCommandContext): Promise<void> {
  const report = await makeReport(host, ctx)
  if (ctx.mode === 'tui') await showPanel(host, ctx, report)
  else tell(ctx, reportLines(report).join('\n'), 'info')
}
