/** The report for programs. Its shape is stable; docs/replay.md describes it. */
import type { Problem } from '../recordings/index.ts'
import type { RecordUse } from './record.ts'
import type { SessionReport } from './run.ts'
import type { Summary } from './summary.ts'

/** Increases when a field is removed or changes its meaning; new fields may be added at any time. */
const JSON_VERSION = 1

/** One session, without what only the picture needs. */
export type JsonSession = Omit<SessionReport, 'details'>

/** The whole report. Numbers that do not exist (a cost relative to a policy that was left out) are null. */
export interface JsonReport {
  version: typeof JSON_VERSION
  options: {
    cache: string
    /** A ratio that no option names is absent: each model's own price holds. */
    prices: 'own' | { read?: number; write?: number }
    window: number
    /** The parts of the record that count instead of these options, for sessions whose provider counted. */
    record?: RecordUse
    charsPerToken: 'fitted' | number
    systemTokens: 'fitted' | number
  }
  sessions: JsonSession[]
  summary: Summary
  problems: Problem[]
  /** Files that were left out on purpose: conversations of subagents, sessions without a model call. */
  leftOut: LeftOutFile[]
}

/** A file that was left out, and what was paid for it as far as that is known. */
export interface LeftOutFile {
  file: string
  message: string
  /** Model calls that no other file has, and dollars that were paid for them, answers included. */
  calls?: number
  cost?: number
  /** The calls that other files also have. */
  repeated?: { calls: number; cost: number }
}

/** A session without the details. */
function jsonSession({ details: _, ...rest }: SessionReport): JsonSession {
  return rest
}

/** Writes a report piece by piece, so that no more than one session is in memory. */
export class JsonWriter {
  readonly #write: (text: string) => void
  #sessions = 0

  constructor(write: (text: string) => void, options: JsonReport['options']) {
    this.#write = write
    this.#write(`{"version":${JSON_VERSION},"options":${JSON.stringify(options)},"sessions":[`)
  }

  /** The next session. */
  add(report: SessionReport): void {
    this.#write(`${this.#sessions === 0 ? '\n' : ',\n'}${JSON.stringify(jsonSession(report))}`)
    this.#sessions += 1
  }

  /** Writes the part after the sessions. */
  end(summary: Summary, problems: readonly Problem[], leftOut: JsonReport['leftOut']): void {
    const rest = { summary, problems, leftOut }
    this.#write(
      `\n],\n${Object.entries(rest)
        .map(([name, value]) => `"${name}":${JSON.stringify(value)}`)
        .join(',\n')}}\n`,
    )
  }
}
