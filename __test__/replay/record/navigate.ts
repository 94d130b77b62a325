/** An extension for recording: a step back in the session tree, with a summary of what is left behind. */
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'

export default function navigate(pi: ExtensionAPI): void {
  pi.registerCommand('goto', {
    description: 'Moves to an entry of the session tree',
    handler: async (id, ctx) => void (await ctx.navigateTree(id.trim(), { summarize: true })),
  })
}
