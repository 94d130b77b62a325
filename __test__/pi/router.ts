/** An extension for the tests: a model that sends hard prompts to another model, and stays with it until the next prompt. */
import type { ExtensionAPI, ExtensionContext } from '@earendil-works/pi-coding-agent'

/** A request that is to be routed, of Pi 1.6.0. */
interface Routed {
  reason: string
  previous?: { model: object }
  failed?: { model: object }
  messages: readonly { role: string; content: unknown }[]
}

export default function router(pi: ExtensionAPI): void {
  const { registerVirtualModel } = pi as unknown as { registerVirtualModel(model: object): void }
  const { ROUTER_EASY: easy, ROUTER_HARD: hard } = process.env
  registerVirtualModel.call(pi, {
    provider: 'router',
    id: 'auto',
    route({ reason, previous, failed, messages }: Routed, { modelRegistry }: ExtensionContext) {
      const before = failed ?? previous
      if (reason !== 'user' && before !== undefined) return { model: before.model, thinkingLevel: 'high' }
      const said = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
      return { model: modelRegistry.find('rig', (said.includes('hard') ? hard : easy) ?? ''), thinkingLevel: 'high' }
    },
  })
}
