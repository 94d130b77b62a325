/** An extension for the tests: Pi's commands that RPC does not offer. */
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'

export default function navigate(pi: ExtensionAPI): void {
  pi.registerCommand('goto', {
    description: 'Moves to an entry of the session tree',
    handler: async (id, ctx) => void (await ctx.navigateTree(id.trim(), { summarize: false })),
  })
  pi.registerCommand('again', {
    description: 'Reloads the extensions',
    handler: (_args, ctx) => ctx.reload(),
  })
}
