/** Keeps what the user changes between turns. */
import type { Boundary } from './boundary.ts'
import type { Host } from './host.ts'
import { POINT } from './point.ts'

/** Saves the state on the branch: what a command or a key changed belongs to the branch, as a turn does. */
export async function keep(host: Host, boundary: Boundary): Promise<void> {
  host.pi.appendEntry(POINT, await boundary.point())
}
