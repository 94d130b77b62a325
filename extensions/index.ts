/**
 * The Pi extension. It records every tool output and file that the agent encounters, and collapses what is no longer
 * needed to references once that pays. The engine makes all decisions; the extension turns Pi's events into its
 * calls.
 */
import type {
  BeforeAgentStartEvent,
  BeforeAgentStartEventResult,
  ContextEventResult,
  ContextWithSystemEvent,
  ExtensionAPI,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
  SessionTreeEvent,
  ToolCallEvent,
  ToolCallEventResult,
  ToolResultEvent,
  ToolResultEventResult,
  TurnEndEvent,
  TurnEndEventResult,
} from '@earendil-works/pi-coding-agent'
import { NOTICE } from './boundary.ts'
import { registerCommand } from './commands.ts'
import { beforeCompaction } from './compaction.ts'
import { flattened } from '../lib/core/index.ts'
import { Handover, handedLine } from './handover.ts'
import { Host, TOOLS_FLAG } from './host.ts'
import type { Load } from './host.ts'
import { isContent, parentOf, structured, toolcallOf, withHeader } from './results.ts'
import { showStatus } from './ui.ts'

/** The extension as Pi loads it. Never throws and does nothing before `session_start`. */
export default function contextManager(pi: ExtensionAPI): void {
  install(pi, loadNative)
}

/** Registers the extension with a different way to load the native module. */
export function install(pi: ExtensionAPI, load: Load): void {
  const host = new Host(pi, load)
  pi.registerFlag(TOOLS_FLAG, {
    type: 'string',
    description: 'Context manager: "observe" leaves read, write and edit to other extensions',
  })
  registerCommand(pi, host)

  pi.on('session_start', async ({ reason }, ctx) => {
    await host.start(ctx, reason === 'new' || reason === 'fork')
    await showStatus(host, ctx)
  })
  const handover = new Handover()
  pi.on('session_shutdown', async (_event, ctx) => {
    handover.close()
    await host.stop(ctx)
  })

  pi.on(
    'before_agent_start',
    host.handler<BeforeAgentStartEvent, BeforeAgentStartEventResult>('before_agent_start', async (boundary, event, ctx) => {
      // Newer versions of Pi also fire this before a run started by a message of an extension.
      const isUsers = (event as { messageType?: string }).messageType !== 'custom'
      const content = await boundary.beforePrompt(ctx, isUsers)
      return content === undefined ? undefined : { message: { customType: NOTICE, content, display: true } }
    }),
  )
  // Pi would answer a changed conversation without its system messages by putting all tools that came later at its head: the
  // cache and the model's reasoning would be lost.
  pi.on(
    'context_with_system',
    host.handler<ContextWithSystemEvent, ContextEventResult>(
      'context_with_system',
      (boundary, event, ctx) => boundary.beforeCall(event, ctx),
      (boundary, event) => boundary.lastForm(event),
    ),
  )
  pi.on('before_provider_request', (event, ctx) => {
    const changed = host.changed(event.payload, ctx)
    host.requests.keep(changed ?? event.payload)
    return changed
  })
  pi.on(
    'before_agent_start',
    host.handler<BeforeAgentStartEvent, BeforeAgentStartEventResult>('handover', async (boundary, event) => {
      // A run that begins by itself has no prompt in newer versions of Pi, whatever the type says.
      const names = await handover.take(boundary.manager, event.prompt ?? '')
      if (names.length === 0) return undefined
      return { message: { customType: NOTICE, content: handedLine(names, host.wayBack()), display: true } }
    }),
  )
  const guarded = host.handler<ToolCallEvent, ToolCallEventResult>('tool_call', async (boundary, event) => {
    // Arguments of nested calls are data; do not check them for references.
    if (parentOf(event) !== undefined) return undefined
    const reason = await boundary.manager.checkArguments(flattened(event.input))
    return reason == null ? undefined : { block: true, reason }
  })
  const handed = host.handler<ToolCallEvent>('handover', (boundary, event) => handover.lay(boundary.manager, event))
  pi.on('tool_call', async (event, ctx) => {
    host.nested.begin(event)
    const refusal = await guarded(event, ctx)
    // A call that is refused starts no agent.
    if (refusal === undefined) await handed(event, ctx)
    return refusal
  })
  pi.on('tool_execution_end', (event) => host.nested.end(event.toolCallId))
  pi.on(
    'tool_result',
    host.handler<ToolResultEvent, ToolResultEventResult>('tool_result', async (boundary, event) => {
      if (!isContent(event.content)) return undefined
      const parent = parentOf(event)
      if (parent !== undefined) return host.nested.record(boundary.manager, event, parent)
      const call = await toolcallOf(event)
      const { header } = await boundary.manager.receive(call)
      if (host.exempt(call.tool, event.input)) await boundary.manager.pin(call.id)
      const isHeaded = header !== undefined && boundary.sendsReferences
      const isRead = call.tool === 'read'
      boundary.birth(call.id, (isRead ? host.spared : 0) - (isHeaded ? header.length + 1 : 0))
      if (isRead) host.spared = 0
      if (!isHeaded) return undefined
      return { content: withHeader(event.content, header), ...structured(event) }
    }),
  )
  pi.on(
    'turn_end',
    host.handler<TurnEndEvent, TurnEndEventResult>('turn_end', async (boundary, event, ctx) => {
      if (event.outcome === 'completed') host.requests.answered()
      const result = await boundary.turnEnd(event, ctx)
      await showStatus(host, ctx)
      return result
    }),
  )
  pi.on(
    'session_tree',
    host.handler<SessionTreeEvent>('session_tree', async (boundary, _event, ctx) => {
      host.followBranch(ctx)
      host.requests.clear()
      await boundary.synchronize(ctx)
      await showStatus(host, ctx)
    }),
  )
  pi.on('session_before_compact', host.handler<SessionBeforeCompactEvent, SessionBeforeCompactResult>('session_before_compact', beforeCompaction))
  pi.on(
    'session_compact',
    host.handler<SessionCompactEvent>('session_compact', (boundary, event, ctx) => boundary.compacted(event, ctx)),
  )
}

async function loadNative(): ReturnType<Load> {
  const { ContextManager, defaultStorePath } = await import('../lib/index.ts')
  return { open: (options) => ContextManager.open(options), defaultStorePath }
}
