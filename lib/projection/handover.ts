/** The objects that a parent session hands to a child: the outputs and files that the child's prompt names, nothing else. */
import type { ContextManager } from '../../index.js'
import { namesIn, pointerTo } from '../lines/index.ts'
import type { Projection } from './projection.ts'

/** A session and the projection of its conversation. */
export interface Owner {
  manager: ContextManager
  projection: Projection
}

/**
 * Takes over from a parent's session what prompts name, and allows the child's model to bring it back. `done` has the names that
 * were looked at before, and gets these; the parent's session is asked for only where there is another name.
 */
export async function adoptNamed(prompts: readonly object[], done: Set<string>, child: Owner, parent: () => Promise<Owner>): Promise<void> {
  for (const name of prompts.flatMap((prompt) => namesIn(JSON.stringify(prompt)))) {
    if (done.has(name)) continue
    done.add(name)
    const { manager, projection } = await parent()
    const id = await adopt(child.manager, manager, projection, name)
    if (id !== undefined) child.projection.allow(id)
  }
}

/**
 * Adds an object of the parent's session to the child's, so that the child's model can bring it back. It is the same
 * object, not a copy. Returns its ID, or undefined if the parent does not have the object or may no longer show it.
 */
async function adopt(child: ContextManager, parent: ContextManager, projection: Projection, name: string): Promise<string | undefined> {
  const document = await parent.get(name)
  if (document === null) return undefined
  const id = document['xt/id']
  const { sessionIndex } = await parent.sessionSets()
  if (!sessionIndex.includes(id) || !(await projection.permits(name))) return undefined
  if (document.type === 'file') {
    const { path } = document.source as { path: string }
    return (await child.discover([path]))[0]?.id
  }
  if (document.type !== 'toolcall' || typeof document.content !== 'string') return undefined
  const tool = String(document['tool'])
  // In one store, an equal call of another session would be another object; the line that names one is that one.
  const isShared = (await child.get(id))?.content === document.content
  const adopted = await child.recordToolcall({
    id,
    tool,
    args: (document['args'] ?? {}) as object,
    content: isShared ? pointerTo(name, tool) : document.content,
    status: document['status'] === 'fail' ? 'fail' : 'ok',
  })
  // The child may ask for it, but its text is not in the child's conversation.
  await child.deactivate(adopted)
  return adopted
}
