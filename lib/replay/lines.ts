/** JSON Lines, read as a stream: one line in memory at a time. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Problem } from './recording.ts'

/** A line that is a JSON object. */
export interface JsonLine {
  /** Counted from 1. */
  number: number
  value: Record<string, unknown>
}

/**
 * The lines of a file that are JSON objects. Others are reported and left out; the last one, which a killed program may
 * have left half written, with a sentence of its own. Rejects with what the file system says.
 */
export async function* jsonLines(
  file: string,
  report: (problem: Problem) => void = () => {},
): AsyncGenerator<JsonLine> {
  const stream = createReadStream(file, { encoding: 'utf8', highWaterMark: 1 << 18 })
  const lines = createInterface({ input: stream, crlfDelay: Infinity })
  // readline forwards no errors of its input to an iterator that has not begun to wait.
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure = error
    lines.close()
  })
  let number = 0
  let bad: number | undefined
  try {
    for await (const line of lines) {
      number += 1
      if (bad !== undefined)
        report({ file, line: bad, message: 'this line is not JSON; it is left out', fatal: false })
      bad = undefined
      if (line.trim() === '') continue
      const value = parsed(line)
      if (value === undefined) bad = number
      else yield { number, value }
    }
  } finally {
    lines.close()
    stream.destroy()
  }
  if (failure !== undefined) throw failure
  if (bad !== undefined) {
    report({ file, line: bad, message: 'the last line is cut off; everything before it is replayed', fatal: false })
  }
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
