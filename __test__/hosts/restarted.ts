/** A host that keeps the steps of its conversation and is started anew. */
import type { ShapeName } from '../../lib/projection/harness.ts'
import { written } from './conversation.ts'
import type { Step } from './conversation.ts'
import { Processes } from './processes.ts'

/** A host that keeps only its own messages, in processes one after the other. */
export class Host extends Processes {
  steps: Step[] = []
  canRecall = true

  constructor(shape: ShapeName) {
    super(shape, { canRecall: () => this.canRecall })
  }

  /** Adds steps, and returns the messages that go out, as texts. */
  async send(...added: Step[]): Promise<string[]> {
    this.steps.push(...added)
    this.now += 1_000
    return this.transform(this.messages)
  }

  get messages(): object[] {
    return this.steps.flatMap((step) => written[this.shape](step, 1))
  }

  /** Nothing is cached any more. */
  wait(): void {
    this.now += 3_600_000
  }

  /** The recorded text of an object. */
  async content(id: string): Promise<unknown> {
    return (await (await this.running()).manager.get(id))?.content
  }
}
