/**
 * The fate of the reasoning of one conversation with a strict provider: the blocks that the model could still read, call by call.
 */
import type { ModelRequest } from './exchange.ts'
import { stepsOf } from './strict-prefix.ts'

/** The fate of all blocks of a conversation. Each counts once. */
export interface Fate {
  /** Requests answered with a 400 because of their reasoning. */
  refused: number
  /** Blocks that the model has been sent. */
  blocks: number
  /** Those that it could no longer read while their turn was under way, because they were dropped or left out. */
  lostRunning: number
  /** Those that it could no longer read later. */
  lostLater: number
}

/** Follows the requests of one conversation. `isPrompt` tells the prompts of the user, which begin a turn, from notices. */
export function fateOf(requests: readonly ModelRequest[], isPrompt: (text: string) => boolean): Fate {
  const fate: Fate = { refused: 0, blocks: 0, lostRunning: 0, lostLater: 0 }
  /** In which turn each block came, and whether the model can still read it. */
  const known = new Map<string, { turn: number; isRead: boolean }>()
  for (const request of requests) {
    if (request.verdict?.refusal !== undefined) {
      fate.refused += 1
      continue
    }
    const turn = request.messages.filter(({ role, text }) => role === 'user' && isPrompt(text)).length
    const read = readIn(request)
    for (const signature of read) if (!known.has(signature)) known.set(signature, { turn, isRead: true })
    for (const [signature, block] of known) {
      if (!block.isRead || read.has(signature)) continue
      block.isRead = false
      if (block.turn === turn) fate.lostRunning += 1
      else fate.lostLater += 1
    }
  }
  return { ...fate, blocks: known.size }
}

/** The blocks of a request that the model reads. */
function readIn(request: ModelRequest): Set<string> {
  const signatures = stepsOf(request).flatMap((step) => ('thought' in step ? [step.signature] : []))
  const { outcome, mismatches = [] } = request.verdict ?? {}
  const gone = new Set(outcome === 'drops' ? mismatches.map(({ signature }) => signature) : [])
  return new Set(signatures.filter((signature) => !gone.has(signature)))
}
