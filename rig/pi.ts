/** The real Pi in print mode, and everything else of the rig by one import. */
import { piArguments } from './options.ts'
import type { PiOptions } from './options.ts'
import { PiProcess } from './process.ts'
import type { Exit } from './process.ts'
import { newestSession } from './session.ts'

export { cleanUp, onCleanUp } from './cleanup.ts'
export { createPiHome, MODEL, temporaryFolder } from './home.ts'
export type { PiHome, PiHomeOptions } from './home.ts'
export { startRpc } from './rpc.ts'
export type { PiRpc, RpcEvent } from './rpc.ts'
export { branchOf, messagesOf, newestSession, readSession, sessionFiles } from './session.ts'

/** A print-mode run. */
interface PrintOptions extends PiOptions {
  /** User prompts, sent one after the other in one process. */
  prompts: readonly string[]
}

/** The end of a print-mode run. */
export interface PrintResult {
  /** Null when a signal ended it. */
  exitCode: number | null
  signal: NodeJS.Signals | null
  /** The last answer. */
  stdout: string
  stderr: string
  /** The session file written last in this home; undefined where Pi wrote none. */
  sessionFile: string | undefined
}

/** A print-mode run that is under way. */
interface RunningPrint {
  readonly process: PiProcess
  /** Resolves with the outcome, whatever the exit code; rejects when the time is over. */
  readonly result: Promise<PrintResult>
  kill9(): Promise<Exit>
}

/** Runs `pi -p` to its end. Rejects only when the time is over; a failure of Pi is an exit code. */
export function runPrint(options: PrintOptions): Promise<PrintResult> {
  return startPrint(options).result
}

/** Starts `pi -p`, for tests that kill it on the way. */
export function startPrint(options: PrintOptions): RunningPrint {
  const running = new PiProcess({
    args: ['-p', ...piArguments(options), '--', ...options.prompts],
    cwd: options.cwd ?? options.home.cwd,
    env: { ...options.home.env, ...options.env },
    input: false,
  })
  const result = running.wait(options.timeoutMs ?? 60_000).then(({ code, signal }): PrintResult => ({
    exitCode: code,
    signal,
    stdout: running.stdout,
    stderr: running.stderr,
    sessionFile: newestSession(options.home.sessionsDir),
  }))
  // The caller that kills the run may not be interested in its result.
  result.catch(() => {})
  return { process: running, result, kill9: () => running.kill9() }
}
