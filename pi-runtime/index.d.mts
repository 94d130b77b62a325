/** The oldest Node that Pi runs on, from `engines.node` of Pi's package.json. */
export const MINIMUM_NODE: string

/** A part that Pi needs is missing. */
export class RuntimeError extends Error {
  constructor(code: RuntimeErrorCode, message: string)
  readonly code: RuntimeErrorCode
}

/** Which part is missing. */
export type RuntimeErrorCode = 'NODE_NOT_FOUND' | 'PI_NOT_FOUND' | 'RIPGREP_NOT_FOUND'

/** The parts of a Pi run; every path is absolute. */
export interface Runtime {
  /** A Node binary that is new enough. */
  readonly node: string
  /** The script that Node runs: Pi's command line. */
  readonly cli: string
  /** The command that starts Pi: Node and the script, or with PI_COMPILED=1 the binary that Bun made of it. */
  readonly command: readonly string[]
  /** The ripgrep binary. */
  readonly rg: string
  /** Pi's version. */
  readonly version: string
}

/** A Node that Pi runs on. Throws NODE_NOT_FOUND with each binary that was tried. */
export function findNode(): string

/** The newest Pi that is supported; PI_VERSION=newest runs it. */
export const NEWEST_PI: string

/** Pi's command line, package folder and version. Throws PI_NOT_FOUND. */
export function findPi(): { cli: string; root: string; version: string }

/** The ripgrep for Pi's `grep` tool. Throws RIPGREP_NOT_FOUND. */
export function findRipgrep(): string

/** All three parts at once. Throws a {@link RuntimeError} for the first one that is missing. */
export function findRuntime(): Runtime

/** `path` (default: this process's PATH) followed by the folders of ripgrep and Node. */
export function runtimePath(runtime: Pick<Runtime, 'node' | 'rg'>, path?: string): string

/** Whether a version such as `22.23.3` is at least another one. */
export function isAtLeast(version: string, minimum: string): boolean
