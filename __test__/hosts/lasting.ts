/** A host whose session lasts: it starts anew, or forks, and sends its conversation each time a cache has ended. */
import type { ShapeName } from '../../lib/projection/harness.ts'
import { MODEL, Processes } from './processes.ts'

export class LastingHost extends Processes {
  readonly messages: object[] = []

  constructor(shape: ShapeName) {
    super(shape, { model: { ...MODEL, contextWindow: 60_000 } })
  }

  /** The messages that are sent with these added. */
  async send(added: readonly object[] = []): Promise<object[]> {
    this.now += 600_000
    this.messages.push(...added)
    return (await this.running()).projection.transform(this.messages)
  }

  /** The outputs that the record has under a call's ID. */
  async outputs(call: string): Promise<string[]> {
    const { sessionIndex } = await (await this.running()).manager.sessionSets()
    return sessionIndex.filter((id) => id.includes(call))
  }
}

/** The length of messages in JSON. */
export function lengthOf(messages: readonly object[]): number {
  return JSON.stringify(messages).length
}
