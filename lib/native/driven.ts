/** The methods that drivers of the protocol call, between a host's loop and the engine. */
import type { EditGuard, HeldBack, IncomingMessage, ModelCall, Plan, ReceivedResult, RollPreview, RollReceipt, Toolcall } from '../../index.js'
import { calling, checkToolcall, crossed, crossing, noteBirth } from '../core/index.ts'
import { native } from './native.ts'

/**
 * The part of a session that is for drivers: code that connects an agent's loop, as the Pi extension and the entry points
 * for frameworks do. If you call {@link ContextManager.transformContext}, or use one of these entry points, it calls these
 * methods for you.
 *
 * A driver hands over each tool result (`receive`) and all new messages before each model call (`advance`), applies the
 * edits and notices of the plan to what the model is sent, and waits for durability (`settle`) while the model works.
 */
export abstract class DrivenSession extends native.ContextManager {
  /**
   * Records a tool result before the host stores it, and returns the line to put before it. `content` is the complete
   * output, before any truncation. When the promise resolves, the record survives the end of the process; after `settle` it
   * also survives a power failure.
   */
  override receive(call: Toolcall): Promise<ReceivedResult> {
    const received = calling(() => super.receive(toolcall(call)))
    noteBirth(this, (call as Toolcall | undefined)?.id)
    return received
  }

  /**
   * Takes the messages that are new since the last call, records those not recorded yet, and decides what the next model
   * call will see. Between two rolls, no message that was already sent is replaced. When the promise resolves, the record
   * survives the end of the process; after `settle` it also survives a power failure.
   *
   * Rejects with `INVALID_ARGUMENT` for a message without a role or content, and for negative figures of the model.
   */
  override advance(messages: IncomingMessage[], call: ModelCall): Promise<Plan> {
    return planned(() => super.advance(incoming(messages), call))
  }

  /**
   * Waits until the trackers have seen and indexed everything written to disk before the call, so that the next `advance`
   * tells it. Unlike `flush`, it does not wait for the store.
   */
  override look(): Promise<undefined> {
    return calling(() => super.look())
  }

  /**
   * Waits until everything that `receive`, `advance` and `resync` recorded also survives a power failure. Other writes do so
   * as soon as their promise resolves. The host can continue meanwhile.
   */
  override settle(): Promise<undefined> {
    return calling(() => super.settle())
  }

  /**
   * Rebuilds the visible state from the messages of the host's current branch, with earlier edits already applied. The first
   * `recorded` messages are already in the store.
   */
  override resync(messages: IncomingMessage[], recorded: number, call: ModelCall): Promise<Plan> {
    return planned(() => super.resync(incoming(messages), recorded, call))
  }

  /**
   * Returns the answer to a read of a file, just indexed, whose lines are still visible in the model's request: where they
   * are, or what has changed in them since. Null means: show the lines. `offset` is the first line, counted from 1, and
   * `limit` the number of lines. With `callId`, the ID of the tool call, its result counts as exactly this answer.
   */
  override answerRead(path: string, offset?: number | null, limit?: number | null, callId?: string | null): Promise<string | undefined | null> {
    return calling(() => super.answerRead(path, offset, limit, callId))
  }

  /**
   * Checks an edit of a file. If the file has changed since the model last saw or wrote it, returns a refusal with the
   * difference; after that, the model counts as knowing the change. Null means: go ahead.
   */
  override checkEdit(path: string): Promise<string | undefined | null> {
    return calling(() => super.checkEdit(path))
  }

  /**
   * Checks an edit of a file before it is made. `oldTexts` are the texts that it replaces; leave them out for a write of the
   * whole file. If the file has changed since the model last saw or wrote it, and the change has touched none of these
   * texts' lines or the model has read these since, the answer has a `difference` to add to the edit's result. If it has, or if nothing is known of the edit,
   * the answer has a `refusal` with the difference; after that, the model counts as knowing the change. With neither: go
   * ahead. With `callId`, the ID of the tool call, its result counts as exactly this answer.
   */
  override guardEdit(path: string, oldTexts?: string[] | null, callId?: string | null): Promise<EditGuard> {
    return calling(() => super.guardEdit(path, oldTexts, callId))
  }

  /**
   * Checks the arguments of a call. If one of them is nothing but a marker for collapsed text, returns the message to refuse
   * the call with. Null means: go ahead.
   */
  override checkArguments(args: object): Promise<string | undefined | null> {
    return calling(() => super.checkArguments(crossing(args, 'args')))
  }

  /**
   * Returns notices for the model about files that have changed since the version it knows, once for each version.
   * `advance` returns the same in its plan; call this between a prompt and its first model call.
   */
  override staleNotices(): Promise<string[]> {
    return calling(() => super.staleNotices())
  }

  /** Rolls everything stale now, at the user's request. */
  override rollNow(call: ModelCall): Promise<Plan> {
    return planned(() => super.rollNow(call))
  }

  /**
   * Returns what `rollNow` would do: the receipt, with what it removes, what it costs and when it has paid for itself, and the
   * calls whose outputs it would collapse. Null means that nothing would be rolled. Changes nothing.
   */
  override previewRoll(call: ModelCall): Promise<RollPreview | undefined | null> {
    return calling(() => super.previewRoll(call))
  }

  /**
   * Returns what could leave the request and has not, why, and what its next chance is. Null means that nothing could.
   * Changes nothing; the cost grows with what the request shows.
   */
  override heldBack(call: ModelCall): Promise<HeldBack | undefined | null> {
    return calling(() => super.heldBack(call))
  }

  /** Undoes the latest roll of this process: its messages are shown as before it. */
  override undoRoll(): Promise<Plan> {
    return planned(() => super.undoRoll())
  }

  /** Returns the receipts of the rolls in effect, oldest first. */
  override receipts(): Promise<RollReceipt[]> {
    return calling(() => super.receipts())
  }

  /**
   * Restores the pool, the active and pinned sets, and the chat to their state after a transaction of a session: this one
   * (when moving to another branch) or the one it was forked from. The index becomes the union of both. Transaction 0 comes
   * before all others: nothing encountered, nothing said.
   *
   * Pass the result of `pointTimes` as `times` to find the point even in a store that the session was moved to, where
   * transactions have different numbers. Rejects with `UNKNOWN_OBJECT` if the store does not have the point.
   */
  override restore(sessionId: string, tx: number, times?: string[] | null): Promise<undefined> {
    return calling(() => super.restore(sessionId, tx, times))
  }

  /**
   * Restores the session as `restore` does, for a host that has removed messages from the end of its conversation. The edits
   * of rolls to the messages that stay remain in effect, even if they came later: the provider has these messages in its cache as
   * they were last sent. Rejects with `UNKNOWN_OBJECT` if the session did not exist at that transaction.
   */
  override goBack(tx: number): Promise<undefined> {
    return calling(() => super.goBack(tx))
  }

  /**
   * Goes back as `goBack` does, to a point of which the store has no version because it is before the beginning of a fork. The chat keeps its first `messages` messages of users and the model; the pool and the active and pinned sets stay.
   */
  override keepBeginning(messages: number): Promise<undefined> {
    return calling(() => super.keepBeginning(messages))
  }

  /** Returns the session's newest own transaction, for `restore`. */
  override point(): Promise<number> {
    return calling(() => super.point())
  }

  /** Returns the valid times of the session's document and its chat at that point, the same in every store; RFC 3339. */
  override pointTimes(): Promise<[string, string]> {
    return calling(() => super.pointTimes())
  }
}

/** A tool call on its way to the native half. */
export function toolcall(call: Toolcall): Toolcall {
  checkToolcall(call)
  return { ...call, args: crossing(call.args, 'args') }
}

function incoming(messages: IncomingMessage[]): IncomingMessage[] {
  return messages.map(({ key, message }) => ({ key, message: crossing(message, 'a message') }))
}

async function planned(call: () => Promise<Plan>): Promise<Plan> {
  const plan = await calling(call)
  for (const edit of plan.edits) {
    if (edit.kind === 'message') for (const one of edit.calls) one.args = crossed(one.args)
  }
  return plan
}
