/** The files that the client of the MCP server can reach, and the paths by which its tools know them. */
import { posix, resolve } from 'node:path'
import type { MountMapping, ObjectDocument } from '../../index.js'
import { realOf } from '../core/index.ts'
import { asStored, defaultFilesystemId } from '../native/index.ts'

/** The paths of the client's tools, as `ContextManager.open` takes them. Without both, they are those of this machine. */
export interface ClientPaths {
  mounts?: readonly MountMapping[]
  /** The filesystem of all paths that no mount covers. */
  filesystemId?: string
}

/** A file's place: its filesystem, if it is known, and its path there. */
interface FilePlace {
  filesystemId: string | undefined
  path: string
}

/** A folder of the client or of this machine, and the place of it. */
interface Mounted {
  agentPrefix: string
  place: FilePlace
}

/** The client's paths, and the files behind them. */
export class Reach {
  readonly #mounts: readonly Mounted[]
  /** The filesystem of other paths; undefined if the client has none that can be named. */
  readonly #own: string | undefined
  /** True if the client's paths are this machine's. */
  readonly isThisMachine: boolean

  constructor({ mounts = [], filesystemId }: ClientPaths) {
    this.isThisMachine = mounts.length === 0 && filesystemId === undefined
    this.#own = filesystemId
    this.#mounts = mounts.map(({ agentPrefix, canonicalPrefix, filesystemId: id = defaultFilesystemId() ?? undefined }) => ({
      agentPrefix: posix.normalize(`${agentPrefix}/`),
      place: { filesystemId: id, path: withSlash(asStored(realOf(canonicalPrefix))) },
    }))
  }

  /** The place of a folder of the client's; undefined if no mount covers it and it can't be named. */
  placeOf(folder: string): FilePlace | undefined {
    // The paths of a session on this machine have any filesystem: those of another machine are marked in hits.
    if (this.isThisMachine) return { filesystemId: undefined, path: asStored(realOf(resolve(folder))) }
    const path = withSlash(posix.normalize(folder))
    const mount = longest(this.#mounts.filter(({ agentPrefix }) => path.startsWith(agentPrefix)))
    if (mount === undefined) return this.#own === undefined ? undefined : { filesystemId: this.#own, path: withoutSlash(path) }
    const { filesystemId, path: prefix } = mount.place
    return { filesystemId, path: asStored(realOf(withoutSlash(`${prefix}${path.slice(mount.agentPrefix.length)}`))) }
  }

  /** The path by which the client knows a file; undefined if it can't reach it. */
  pathOf(document: ObjectDocument): string | undefined {
    const { filesystemId, path } = placeIn(document) ?? {}
    if (path === undefined) return undefined
    const covers = ({ place }: Mounted): boolean => isOf(place.filesystemId, filesystemId) && path.startsWith(place.path)
    const mount = this.#mounts.filter(covers).toSorted((one, other) => other.place.path.length - one.place.path.length)[0]
    if (mount !== undefined) return `${mount.agentPrefix}${path.slice(mount.place.path.length)}`
    return filesystemId === this.#own ? path : undefined
  }
}

/** True if a file is in a folder. */
export function isIn(document: ObjectDocument, folder: FilePlace): boolean {
  const place = placeIn(document)
  if (place === undefined || !isOf(folder.filesystemId, place.filesystemId)) return false
  return place.path === folder.path || place.path.startsWith(withSlash(folder.path))
}

/** The place of a file as its version has it. */
function placeIn({ source }: ObjectDocument): FilePlace | undefined {
  const { filesystemId, path } = (source ?? {}) as { filesystemId?: unknown; path?: unknown }
  return typeof path === 'string' && typeof filesystemId === 'string' ? { filesystemId, path } : undefined
}

/** True if a file of a filesystem can be one of those that were named; a machine without an ID can't name its own. */
function isOf(named: string | undefined, filesystemId: string | undefined): boolean {
  return named === undefined || named === filesystemId
}

function longest(mounts: readonly Mounted[]): Mounted | undefined {
  return mounts.toSorted((one, other) => other.agentPrefix.length - one.agentPrefix.length)[0]
}

const withSlash = (path: string): string => (path.endsWith('/') ? path : `${path}/`)
const withoutSlash = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
