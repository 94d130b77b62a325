/** The options of a session that is opened. */
import type { MountMapping, OpenOptions as NativeOptions, StayOptions, WindowOptions } from '../../index.js'
import { calling, checkStore, homeFolder, invalid, known, list, noteFolder, placed } from '../core/index.ts'
import type { Names } from '../core/index.ts'
import type { DrivenSession } from '../native/index.ts'
import { checkModel } from '../projection/index.ts'
import type { ProjectedModel, ShapeName } from '../projection/index.ts'

/** The options of opening a session, and of projecting its messages. */
export interface OpenOptions extends NativeOptions {
  /** The form in which `transformContext` renders. Default `references`. */
  layout?: 'references' | 'sections'
  /** The model that `transformContext` renders for; a function if it may change. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** The shape of `transformContext`'s messages. Default: detected from the messages. */
  shape?: ShapeName
}

/** The options with defaults for what the user left open. Throws `INVALID_ARGUMENT`. */
export function checkedOptions(options: OpenOptions): OpenOptions & NativeOptions {
  checkOpen(options)
  return { ...options, store: placed(options.store), home: options.home ?? homeFolder() }
}

/** Starts a session, or the one in an exported file. */
export async function started(session: DrivenSession, options: NativeOptions, file?: string): Promise<void> {
  await calling(() => session.start(options, file))
  noteFolder(session, options.cwd)
}

const OPEN: Names<OpenOptions> = {
  sessionId: true,
  cwd: true,
  store: true,
  home: true,
  systemPrompt: true,
  filesystemId: true,
  mounts: true,
  window: true,
  stay: true,
  watch: true,
  watchUnmapped: true,
  detectDevices: true,
  redact: true,
  isNew: true,
  guessesCwd: true,
  layout: true,
  model: true,
  shape: true,
}
const MOUNT: Names<MountMapping> = { agentPrefix: true, canonicalPrefix: true, filesystemId: true }
const WINDOW: Names<WindowOptions> = { perTurn: true, turnsBack: true }
const STAY: Names<StayOptions> = { thinking: true, calls: true, prose: true, weight: true, debtCap: true }

const MODEL: Names<ProjectedModel> = {
  input: true,
  cacheRead: true,
  cacheWrite: true,
  caches: true,
  contextWindow: true,
  cacheTtlMs: true,
  name: true,
  lookbackBlocks: true,
  lookbackEndings: true,
  binding: true,
  textIsReasoning: true,
  tiers: true,
}

/** Checks the options of `ContextManager.open`. Throws `INVALID_ARGUMENT`. */
function checkOpen(options: OpenOptions): void {
  known('the options object of open', options, OPEN)
  if (![undefined, 'references', 'sections'].includes(options.layout)) throw invalid("layout is 'references' or 'sections'")
  if (options.store !== undefined) checkStore(options.store)
  if (options.window !== undefined) known('window', options.window, WINDOW)
  if (options.stay !== undefined) known('stay', options.stay, STAY)
  if (options.model !== undefined && typeof options.model !== 'function') {
    known('model', options.model, MODEL)
    checkModel(options.model)
  }
  for (const mount of list('mounts', options.mounts ?? [])) known('a mount', mount, MOUNT)
}
