/** JSON files, plain or gzipped: JSON Lines, read as a stream with one line in memory at a time, and whole documents. */
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { createGunzip, gunzipSync } from 'node:zlib'
import { NotReplayable } from './recording.ts'
import type { Problem } from './recording.ts'

/** A line that is a JSON object. */
interface JsonLine {
  /** Counted from 1. */
  number: number
  value: Record<string, unknown>
}

/**
 * The lines of a file that are JSON objects. Others are reported and left out; a last line that a killed program left
 * half written gets its own message. Rejects with any file system error.
 */
export async function* jsonLines(file: string, report: (problem: Problem) => void = () => {}): AsyncGenerator<JsonLine> {
  const stream = createReadStream(file, { highWaterMark: 1 << 18 })
  const packed = file.endsWith('.gz')
  const input = packed ? stream.pipe(createGunzip()) : stream
  const lines = createInterface({ input, crlfDelay: Infinity })
  // readline does not forward input errors to an iterator that is not yet waiting, and pipe forwards none at all.
  let failure: Error | undefined
  const fail = (error: Error): void => {
    failure ??= error
    lines.close()
  }
  stream.on('error', fail)
  if (packed) input.on('error', fail)
  let number = 0
  let bad: number | undefined
  try {
    for await (const line of lines) {
      number += 1
      if (bad !== undefined) report({ file, line: bad, message: 'this line is not JSON; it is left out', fatal: false })
      bad = undefined
      if (line.trim() === '') continue
      const value = parsed(line)
      if (value === undefined) bad = number
      else yield { number, value }
    }
  } catch (error) {
    throw unpacked(error as Error)
  } finally {
    lines.close()
    stream.destroy()
  }
  if (failure !== undefined) throw unpacked(failure)
  if (bad !== undefined) {
    report({ file, line: bad, message: 'the last line is cut off; everything before it is replayed', fatal: false })
  }
}

/** The zlib error for a truncated file, or one that is not gzip, as a sentence. */
function unpacked(error: Error): Error {
  const { code } = error as { code?: string }
  if (code === 'Z_BUF_ERROR') return new NotReplayable('the gzip file is cut off')
  return code?.startsWith('Z_') === true ? new NotReplayable('it is not a gzip file, or is damaged') : error
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Reads a JSON document. Throws {@link NotReplayable} for anything else. */
export async function jsonDocument(file: string): Promise<unknown> {
  const bytes = await readFile(file)
  try {
    return JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').replace(/^\uFEFF/, ''))
  } catch {
    throw new NotReplayable('it is not a JSON document, or is cut off')
  }
}
