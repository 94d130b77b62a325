/** A process of a host: a session and the projection of its messages. */
import { expect } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ShapeName } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import type { StoreOptions } from '../lib/index.ts'
import { onCleanUp } from '../rig/cleanup.ts'
import { FILESYSTEM } from './core/setup.ts'

/** A session, and the projection of its messages. */
export interface ProjectedSession {
  manager: ContextManager
  projection: Projection
}

/** Opens a session. `model` returns the name of the model that is asked. Nothing watches the files; the cleanup closes it. */
export async function projected(
  shape: ShapeName,
  { model, ...place }: { model: () => string; sessionId: string; cwd: string; store: StoreOptions },
): Promise<ProjectedSession> {
  const manager = await ContextManager.open({ ...place, filesystemId: FILESYSTEM, watch: false })
  onCleanUp(() => manager.close())
  const projection = new Projection(manager, {
    shape,
    model: () => ({ name: model(), contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }),
    shortens: true,
    // Each request would give its notices another time.
    now: () => 1_000,
    onWarning: (warning) => expect.unreachable(warning),
  })
  return { manager, projection }
}
