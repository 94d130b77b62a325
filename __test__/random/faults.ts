/** Runs events against a world until something is wrong in it. */
import { Host } from './host.ts'
import type { Event } from './host.ts'

/** The fault of a run: the number of events before it, and its description. */
export interface Found {
  after: number
  fault: string
}

/** The world in which the events happen, besides the host. */
interface Happening {
  open(): Promise<void>
  apply(event: Event): Promise<void>
  close(): Promise<void>
}

/** Runs events, and closes the world behind them. Returns the first fault. `pass` asks for one; `after` counts the events so far. */
export async function firstFault(
  events: Iterable<Event>,
  world: Happening,
  pass: (host: Host, isEdited: boolean, after: number) => Promise<string | undefined>,
): Promise<Found | undefined> {
  const host = new Host()
  await world.open()
  try {
    let after = 0
    for (const event of events) {
      after += 1
      const isEdited = host.apply(event)
      await world.apply(event)
      if (host.steps.length === 0) continue
      const fault = await pass(host, isEdited, after)
      if (fault !== undefined) return { after, fault }
    }
    return undefined
  } finally {
    await world.close()
  }
}
