/** A summary of a gateway's work, in a few lines for the terminal. */
import { heldText, lifetimeText } from '../ui/index.ts'
import type { Held } from '../ui/index.ts'
import { hostTitle } from '../core/index.ts'
import type { HostName } from '../core/index.ts'
import type { BillLedger, SessionSums } from '../gateway/index.ts'
import { accountLine, accountOf, savedShare } from '../gateway/index.ts'

/**
 * The lines; none if no request has gone through. `held`: what is held back where most is, and why. `hasFailed`: a failure kept requests as
 * they were.
 */
export function summaryOf(ledger: BillLedger, held?: Held, hasFailed = false): string[] {
  const edited = ledger.sessions.filter(({ isHeldOut }) => !isHeldOut)
  const unedited = ledger.sessions.filter(({ isHeldOut }) => isHeldOut).reduce((sum, one) => sum + one.requests, 0)
  const left =
    unedited === 0
      ? []
      : [
          `pi-context-manager: ${unedited} ${unedited === 1 ? 'request' : 'requests'} went out unedited (--holdout); "pi-context-manager usage" compares both kinds`,
        ]
  const requests = edited.reduce((sum, one) => sum + one.requests, 0)
  if (requests === 0) return left
  const rolls = edited.reduce((sum, one) => sum + one.rolls.length, 0)
  const saved = accountLine(edited)
  const host = hostTitle(edited[0]?.host as HostName)
  const share =
    saved === undefined
      ? 'the answers reported no token counts, so what was saved is not known'
      : rolls === 0 && Math.abs(savedShare(accountOf(edited))) < 0.005
        ? `nothing was saved${whyNothing(held, hasFailed)}`
        : `${saved} (estimated)`
  return [
    `pi-context-manager: ${requests} ${requests === 1 ? 'request' : 'requests'} of ${host}, ${rolls} ${rolls === 1 ? 'roll' : 'rolls'}; ${share}`,
    ...lifetimeLines(edited),
    ...left,
  ]
}

function whyNothing(held: Held | undefined, hasFailed: boolean): string {
  if (hasFailed) return ', because requests went out as they came: see the warning above'
  return held === undefined ? ', because nothing was worth collapsing' : `. ${heldText(held)}`
}

/** The lifetime that was chosen for the latest session, and what the choices of all have saved or cost; none if that is nothing. */
function lifetimeLines(sessions: readonly SessionSums[]): string[] {
  const chosen = sessions.flatMap(({ lifetime }) => lifetime ?? [])
  const savedTokens = Math.round(chosen.reduce((sum, one) => sum + one.savedTokens, 0))
  const latest = chosen.at(-1)
  return latest === undefined || savedTokens === 0 ? [] : [`pi-context-manager: the cache's lifetime: ${lifetimeText({ why: latest.why, savedTokens })}`]
}
