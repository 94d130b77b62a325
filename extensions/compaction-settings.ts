/** Pi's settings for its compaction, read again when one of their files has changed. */
import { join } from 'node:path'
import { CONFIG_DIR_NAME, getAgentDir, SettingsManager } from '@earendil-works/pi-coding-agent'
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import { statOf } from '../lib/core/index.ts'
import { PI_COMPACTION } from '../lib/models/index.ts'
import type { PiCompaction } from '../lib/models/index.ts'

/** The settings of one session. */
export class CompactionSettings {
  #key: string | undefined
  #settings: PiCompaction = PI_COMPACTION

  /** The settings for the model in `ctx`; Pi's own ones where they can't be read. */
  of(ctx: ExtensionContext): PiCompaction {
    const projectTrusted = ctx.isProjectTrusted()
    const files = [join(getAgentDir(), 'settings.json'), join(ctx.cwd, CONFIG_DIR_NAME, 'settings.json')]
    const key = [ctx.model?.provider, ctx.model?.id, projectTrusted, ...files.map(stateOf)].join(' ')
    if (key === this.#key) return this.#settings
    this.#key = key
    try {
      this.#settings = SettingsManager.create(ctx.cwd, getAgentDir(), { projectTrusted }).getCompactionSettings(ctx.model)
    } catch {
      this.#settings = PI_COMPACTION
    }
    return this.#settings
  }
}

function stateOf(path: string): string {
  const stat = statOf(path)
  return stat === undefined ? '-' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`
}
