/**
 * Calls that a program of the model makes (Pi's codemode, scripts of MCP servers). Their values go to the program, so they
 * stay byte for byte what they are; Pi keeps none of them, so they are recorded, under the call that made them.
 */
import type { ToolCallEvent, ToolResultEvent } from '@earendil-works/pi-coding-agent'
import type { ContextManager } from '../index.js'
import { toolcallOf } from './results.ts'

/** What newer versions of Pi add to the events of a tool. */
interface Nested {
  /** The call that made this one. */
  parentToolCallId?: string
  /** The value for programs, of tools that have one. */
  structuredContent?: unknown
}

/** The call that made this one; undefined where the model has made it. */
export function parentOf(event: object): string | undefined {
  return (event as Nested).parentToolCallId
}

/** The nested calls that are under way: a tool is told no more than its call's id. */
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

  /** Whether a call is a nested one. */
  has(callId: string): boolean {
    return this.#ids.has(callId)
  }

  /** Records what a nested call gave. It takes no place among what the model has in sight. */
  async record(manager: ContextManager, event: ToolResultEvent, parent: string): Promise<void> {
    const call = await toolcallOf(event)
    const { structuredContent } = event as Nested
    const hasText = call.content !== '' || structuredContent === undefined
    const content = hasText ? call.content : JSON.stringify(structuredContent)
    await manager.receive({ ...call, content, parent })
  }
}

/** The value for programs that a result has, to be given back with changed content: without it Pi drops it. */
export function structured(event: object): { structuredContent?: unknown } {
  const { structuredContent } = event as Nested
  return structuredContent === undefined ? {} : { structuredContent }
}
