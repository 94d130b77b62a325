/** The engine of the policies that have one. */
import { ContextManager } from '../../session/index.ts'
import type { Setting } from './policy.ts'

/** Opens the engine as the extension does, on a separate store; files on this disk are never accessed. */
export function openManager(setting: Setting): Promise<ContextManager> {
  return ContextManager.open({
    sessionId: setting.sessionId,
    cwd: setting.cwd,
    store: setting.store === undefined ? { kind: 'memory' } : { kind: 'sqlite', path: setting.store, durability: 'process' },
    window: { perTurn: setting.manager.perTurn, turnsBack: setting.manager.turnsBack },
    filesystemId: 'replay',
    watch: false,
    watchUnmapped: false,
    home: '/',
    ...setting.manager.open,
  })
}
