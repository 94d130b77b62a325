/** Takes the requests of each arm from replay: the blocks that a policy would have sent for each recorded answer. */
import { basename } from 'node:path'
import { BlockCache, replaySession, survey } from '../../lib/replay/index.ts'
import type { ReplayBlock } from '../../lib/recordings/index.ts'
import { openRecording } from '../../lib/recordings/index.ts'
import { optionsOf, parse } from '../../lib/cli/index.ts'
import type { OwnPhrases, PolicyName, ReplayOptions } from '../../lib/replay/index.ts'
import { answerPieces, requestText } from './chat.ts'
import type { Piece } from './chat.ts'

/** A policy with its settings. */
export interface Arm {
  name: string
  policy: PolicyName
  /** The rule's weight of a missed use; the product's own if undefined. */
  weight?: number
  /** Hide outputs by their age alone, at the calls and down to the size at which the arm of this name hides. */
  like?: string
}

/** The arms, with the full conversation first: the others are compared with it. */
export const ARMS: readonly Arm[] = [
  { name: 'full', policy: 'append' },
  { name: 'rule', policy: 'pi-context-manager' },
  { name: 'age', policy: 'append', like: 'rule' },
  { name: 'weight 1', policy: 'pi-context-manager', weight: 1 },
  { name: 'weight 0.3', policy: 'pi-context-manager', weight: 0.3 },
]

/** The strong missed uses of one answer, as replay counts them, and those that probably harm. */
export interface MissedIn {
  strong: number
  harms: number
}

/** One recorded answer, with the request before it. */
export interface Captured {
  request: string
  pieces: Piece[]
  /** Absent: it uses nothing of what the policy hides. */
  missed?: MissedIn
}

/**
 * Returns the answers of a session with the requests of each arm, by the arm's name. `phrases` are those that models write on their
 * own: with them, missed uses are counted as in a replay of several sessions.
 */
export async function capture(file: string, arms: readonly Arm[], phrases?: OwnPhrases): Promise<Map<string, Captured[]>> {
  const captured = new Map<string, Captured[]>()
  for (const arm of arms) {
    const calls = await callsOf(file, arm, phrases)
    const sizes = arm.like === undefined ? undefined : captured.get(arm.like)?.map(({ request }) => request.length)
    if (arm.like !== undefined && sizes === undefined) throw new Error(`the arm ${arm.name} needs the arm ${arm.like} before it`)
    const age = new ByAge()
    captured.set(
      arm.name,
      calls.map(({ blocks, pieces, missed }, index) => ({
        request: requestText(sizes === undefined ? blocks : age.shorten(blocks, sizes[index] ?? 0)),
        pieces,
        ...(missed !== undefined && { missed }),
      })),
    )
  }
  return captured
}

/** A session's name in the results: its file without endings. */
export function runName(file: string): string {
  return basename(file)
    .replace(/\.gz$/, '')
    .replace(/\.(traj\.json|jsonl|json)$/, '')
}

interface Call {
  answer: object
  blocks: readonly ReplayBlock[]
  pieces: Piece[]
  missed?: MissedIn
}

async function callsOf(file: string, arm: Arm, phrases: OwnPhrases | undefined): Promise<Call[]> {
  const quiet = (): void => {}
  const recording = await openRecording(file)
  const options = optionsOf(parse([file]).values)
  const { manager } = options
  const open = arm.weight === undefined ? manager.open : { ...manager.open, stay: { ...manager.open?.stay, weight: arm.weight } }
  const cache = new BlockCache()
  const calls: Call[] = []
  const found = await survey(recording, quiet)
  const onCall: ReplayOptions['onCall'] = (message, [request]) => {
    if (request === undefined) return
    const entry = { key: `answer-${calls.length}`, message, at: 0 }
    calls.push({ answer: message, blocks: request.blocks, pieces: answerPieces(cache.of(entry)) })
  }
  const onMissed: ReplayOptions['onMissed'] = (_, answer, harms) => {
    const call = calls.findLast((one) => one.answer === answer)
    if (call === undefined) return
    const { strong, harms: before } = call.missed ?? { strong: 0, harms: 0 }
    call.missed = { strong: strong + 1, harms: before + Number(harms) }
  }
  // The full conversation misses nothing, and replay does not see what an arm hides by age.
  const onlyCosts = arm.policy === 'append'
  const learned = phrases === undefined ? {} : { phrases }
  const own = { policies: [arm.policy], manager: { ...manager, ...(open !== undefined && { open }) }, onlyCosts, onCall, onMissed, ...learned }
  await replaySession(recording, found, { ...options, ...own }, quiet, quiet)
  return calls
}

/** Hides the oldest outputs whenever the request has become larger than it should be, and leaves them hidden. */
class ByAge {
  readonly #hidden = new Set<string>()

  /** Returns the blocks with as many outputs hidden as bring them to about `size` UTF-16 units. */
  shorten(blocks: readonly ReplayBlock[], size: number): ReplayBlock[] {
    const shown = (): ReplayBlock[] => blocks.map((block) => (this.#hidden.has(block.bytes) ? masked(block) : block))
    let sent = shown()
    if (requestText(sent).length <= size * TOLERANCE) return sent
    for (const block of blocks) {
      if (block.run !== 'results' || this.#hidden.has(block.bytes)) continue
      this.#hidden.add(block.bytes)
      sent = shown()
      if (requestText(sent).length <= size) break
    }
    return sent
  }
}

/** The size of a request relative to the other arm's above which outputs are hidden. */
const TOLERANCE = 1.05

function masked(block: ReplayBlock): ReplayBlock {
  const [role, result] = JSON.parse(block.bytes) as [string, Record<string, unknown>]
  const content = [{ type: 'text', text: '[Previous output omitted]' }]
  return { ...block, bytes: JSON.stringify([role, { ...result, content }]) }
}
