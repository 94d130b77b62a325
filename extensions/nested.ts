/**
 * Calls made by the model's programs (Pi's codemode, scripts of MCP servers). Their values go to the program, so they
 * must not change by a byte. Pi keeps none of them, so they are recorded under the call that made them.
 */
import type { ToolCallEvent, ToolResultEvent } from '@earendil-works/pi-coding-agent'
import type { ContextManager } from '../index.js'
import { toolcallOf } from './results.ts'

/** What newer versions of Pi add to tool events. */
interface Nested {
  /** The call that made this one. */
  parentToolCallId?: string
  /** The value for programs, if the tool has one. */
  structuredContent?: unknown
}

/** The call that made this one; undefined if the model made it. */
export function parentOf(event: object): string | undefined {
  return (event as Nested).parentToolCallId
}

/** The nested calls in progress: a tool learns nothing but the id of its call. */
export class NestedCalls {
  readonly #ids = new Set<string>()

  /** Before a call. */
  begin(event: ToolCallEvent): void {
    if (parentOf(event) !== undefined) this.#ids.add(event.toolCallId)
  }

  /** After it. */
  end(callId: string): void {
    this.#ids.delete(callId)
  }

  /** Returns whether a call is a nested one. */
  has(callId: string): boolean {
    return this.#ids.has(callId)
  }

  /** Records the result of a nested call, which never enters the window. */
  async record(manager: ContextManager, event: ToolResultEvent, parent: string): Promise<void> {
    const call = await toolcallOf(event)
    const { structuredContent } = event as Nested
    const hasText = call.content !== '' || structuredContent === undefined
    const content = hasText ? call.content : JSON.stringify(structuredContent)
    await manager.receive({ ...call, content, parent })
  }
}

/** The value for programs of a result, to be returned along with changed content: otherwise Pi drops it. */
export function structured(event: object): { structuredContent?: unknown } {
  const { structuredContent } = event as Nested
  return structuredContent === undefined ? {} : { structuredContent }
}
