/** The cost of all agents' sessions, and an estimate of their cost with the context manager, within a few seconds. */
import { statOf } from '../core/index.ts'
import { allSessionFiles, callIn, costOf, openAny, openRecording, placeInDatabase, Recording } from '../recordings/index.ts'
import type { Charged, Problem, Step } from '../recordings/index.ts'
import { replaySession, survey } from '../replay/index.ts'
import { chargesOf, ListedCalls, notedCalls } from '../usage/index.ts'
import type { AgentFolder, Charge, NotedCalls } from '../usage/index.ts'
import { optionsOf, parse } from './replay-options.ts'

/** One agent's sessions, as far as they were read. */
export interface AgentSessions extends AgentFolder {
  /** The number of sessions that were read. */
  sessions: number
  calls: number
  /** Calls of models without known prices, and calls of whose cost nothing in the answer tells. */
  unpriced: number
  unbilled: number
  /**
   * Calls on a plan at a flat rate, as far as the context manager knows, with the tokens of their prompts, as sent and without us; no
   * dollars were paid for them.
   */
  onPlan: { calls: number; sent: number; without: number }
  /** When the first call was made, in milliseconds since the epoch; undefined if none has a time. */
  since: number | undefined
  /** Dollars that were paid. */
  paid: number
  /** Dollars of `paid` for sessions in which the context manager ran, and what it saved there by its own account. */
  managed: { paid: number; saved: number }
  /** The sessions that were replayed: how many, what was paid for them, and what the context manager would have saved. */
  sample: { sessions: number; paid: number; saved: number }
}

/** All agents, and how much of their sessions was read. */
export interface Found {
  agents: AgentSessions[]
  /** Session files, and those that were read; what can't be read counts as read. */
  files: number
  read: number
  /** Files and folders that can't be read, or hold no session. */
  unreadable: number
  /** Calls of which nothing says whether a plan paid for them. */
  listed: ListedCalls
}

/** Limits on the work. */
export interface Limits {
  /** True if the sums have to be complete now; what is read so far counts. */
  isReadingOver(): boolean
  /** True if all has to end now. */
  isOver(): boolean
  progress(part: number, text: string): void
}

/**
 * Dollars that an agent's sessions would have cost with the context manager, by the agent's own sample; undefined if none of them was
 * replayed. What the context manager was paid for already counts as it is.
 */
export function estimateOf({ paid, managed, sample }: AgentSessions): number | undefined {
  const open = paid - managed.paid
  if (open <= LEAST_PAID) return paid
  return sample.paid > 0 ? managed.paid + open * (1 - sample.saved / sample.paid) : undefined
}

/** The least difference between two sums in dollars that is not of their last bits. */
const LEAST_PAID = 1e-6

interface File {
  path: string
  agent: AgentSessions
  bytes: number
  written: number
  /** Dollars that were paid; 0 for a session that is not replayed. */
  paid: number
  /** A plan at a flat rate paid for some of its calls, so that the replay's dollars are not those that were paid. */
  isOnPlan: boolean
}

/** Looks at the newest sessions first: sums up what they cost, then replays as many as there is time for. */
export async function estimated(folders: readonly AgentFolder[], gatewayFile: string | undefined, limits: Limits): Promise<Found> {
  const found: Found = { agents: [], files: 0, read: 0, unreadable: 0, listed: new ListedCalls() }
  const files: File[] = []
  for (const folder of folders) {
    const agent: AgentSessions = {
      ...folder,
      sessions: 0,
      calls: 0,
      unpriced: 0,
      unbilled: 0,
      onPlan: { calls: 0, sent: 0, without: 0 },
      since: undefined,
      paid: 0,
      managed: { paid: 0, saved: 0 },
      sample: { sessions: 0, paid: 0, saved: 0 },
    }
    found.agents.push(agent)
    const paths = await allSessionFiles([folder.path], (_, error) => void (found.unreadable += error === undefined ? 0 : 1))
    for (const path of paths) {
      // A session in a database is as old as that.
      const about = statOf(placeInDatabase(path)?.database ?? path)
      if (about !== undefined) files.push({ path, agent, bytes: about.size, written: about.mtimeMs, paid: 0, isOnPlan: false })
    }
  }
  files.sort((left, right) => right.written - left.written)
  found.files = files.length
  await readCosts(files, await notedCalls(gatewayFile), found, limits)
  await replaySample(files, limits)
  return found
}

/** The share of the work that goes into the sums. */
const READING = 0.6

async function readCosts(files: readonly File[], noted: NotedCalls, found: Found, limits: Limits): Promise<void> {
  const charged: Charged = new Set()
  const sessions = new Map<AgentSessions, Set<string>>()
  const all = files.reduce((sum, { bytes }) => sum + bytes, 1)
  let done = 0
  // The newest file also counts where the program has started late.
  const isOver = (): boolean => limits.isReadingOver() && (found.read > 0 || limits.isOver())
  for (const file of files) {
    if (isOver()) return
    const { agent } = file
    let isManaged = false
    try {
      const recording = await openAny(file.path)
      for await (const charge of chargesOf(recording, charged)) {
        if (isOver()) break
        const passed = noted.take(charge)
        isManaged ||= charge.isManaged || passed?.isManaged === true
        const own = sessions.get(agent) ?? new Set()
        sessions.set(agent, own.add(charge.session))
        // Otherwise the record says it more exactly: it has the model that answered.
        const cost = passed?.hasGivenPrices === true ? passed.cost : charge.cost
        const plan = passed?.plan ?? charge.plan
        if (passed === undefined) found.listed.add({ ...charge, isManaged }, recording.origin.format)
        addCharge(agent, { ...charge, cost, saved: passed?.saved ?? charge.saved, ...(plan !== undefined && { plan }) }, isManaged)
        file.paid += plan === undefined ? (cost ?? 0) : 0
        file.isOnPlan ||= plan !== undefined
        limits.progress((READING * done) / all, file.path)
      }
      agent.sessions = sessions.get(agent)?.size ?? 0
    } catch {
      found.unreadable += 1
    }
    if (isManaged) {
      // Its first answers, too, which come before the one that says so.
      agent.managed.paid += file.paid
      file.paid = 0
    }
    done += file.bytes
    found.read += 1
  }
}

function addCharge(agent: AgentSessions, { calls, cost, at, saved, plan, isUnbilled }: Charge, isManaged: boolean): void {
  agent.calls += calls
  if (at > 0) agent.since = Math.min(agent.since ?? at, at)
  if (plan !== undefined) {
    agent.onPlan.calls += calls
    agent.onPlan.sent += plan.sent
    agent.onPlan.without += plan.without
    return
  }
  agent.paid += cost ?? 0
  if (isUnbilled === true) agent.unbilled += calls
  else if (cost === undefined) agent.unpriced += calls
  if (isManaged) agent.managed.saved += saved
}

/**
 * Replays sessions until the time is over; of the last one only the beginning counts. The newest one of each agent comes first, as
 * nothing else tells what an agent's sessions would have cost, then the others.
 */
async function replaySample(files: readonly File[], limits: Limits): Promise<void> {
  const options = { ...optionsOf(parse(['--policies', 'recorded,pi-context-manager']).values), onlyCosts: true }
  const newest = files.filter(({ paid, isOnPlan }) => paid > 0 && !isOnPlan)
  const first = new Set(new Map(newest.toReversed().map((file) => [file.agent, file])).values())
  const priced = [...newest.filter((file) => first.has(file)), ...newest.filter((file) => !first.has(file))]
  for (const [index, { path, agent }] of priced.entries()) {
    if (limits.isOver()) return
    limits.progress(READING + ((1 - READING) * index) / priced.length, path)
    try {
      const whole = await openRecording(path)
      const found = await survey(new Beginning(whole, limits), () => {}, new Set())
      const part = new Beginning(whole, limits)
      const report = await replaySession(part, found, options)
      const own = report.policies['pi-context-manager']?.cost
      if (report.paid === undefined || own === undefined || report.unit !== 'USD' || report.calls === 0) continue
      agent.sample.sessions += 1
      agent.sample.paid += part.paid
      agent.sample.saved += report.paid.cost - own
    } catch {
      // The sample has only sessions that can be replayed.
    }
  }
}

/** A recording that ends when the time is over. */
class Beginning extends Recording {
  /** Dollars that were paid for the calls so far. */
  paid = 0
  readonly #whole: Recording
  readonly #limits: Limits

  constructor(whole: Recording, limits: Limits) {
    super(whole.file, whole.origin)
    this.#whole = whole
    this.#limits = limits
  }

  override async *steps(report: (problem: Problem) => void): AsyncGenerator<Step> {
    for await (const step of this.#whole.steps(report)) {
      if (this.#limits.isOver()) return
      const call = callIn(step, this.file)
      this.paid += (call === undefined ? undefined : costOf(call)) ?? 0
      yield step
    }
  }
}
