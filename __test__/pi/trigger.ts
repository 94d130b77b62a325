/** `/trigger WORDS` begins a run with a message of an extension, without a prompt of the user. */
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'

export default function trigger(pi: ExtensionAPI): void {
  pi.registerCommand('trigger', {
    description: 'Begin a run',
    async handler(words) {
      pi.sendMessage({ customType: 'trigger', content: words, display: true }, { triggerTurn: true })
    },
  })
}
