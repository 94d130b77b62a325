/** The policies by their names. */
import type { BlockCache } from './block-cache.ts'
import { Append, Clear, Mask, Pi } from './conversation.ts'
import { Managed } from './managed.ts'
import type { Policy, PolicyName, Setting } from './policy.ts'
import { Recorded } from './recorded.ts'
import { Sections } from './sections.ts'

/** Opens a policy for a session; undefined for the bound, which sends nothing. */
export async function openPolicy(name: PolicyName, setting: Setting, cache: BlockCache): Promise<Policy | undefined> {
  switch (name) {
    case 'recorded':
      return new Recorded(setting, cache)
    case 'append':
      return new Append(setting, cache)
    case 'pi':
      return new Pi(setting, cache)
    case 'mask':
      return new Mask(setting, cache)
    case 'clear':
      return new Clear(setting, cache)
    case 'sections':
      return Sections.open(setting)
    case 'pi-context-manager':
      return Managed.open(setting, cache)
    case 'chosen-lifetime': {
      // The store that is kept is that of the other one.
      const { store: _, ...own } = setting
      return Managed.open(own, cache, name)
    }
    case 'bound':
      return undefined
  }
}
