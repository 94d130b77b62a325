/** Names and times for people. */
import { createHash } from 'node:crypto'

/** The longest subject, in characters. */
const LONGEST = 160

/** Returns what a call was about, on one line: its command, its pattern, its path, or else its first text. */
export function subject(args: unknown): string {
  const { command, pattern, path, ...others } = (args ?? {}) as Record<string, unknown>
  const text = [command, pattern, path, ...Object.values(others)].find((value) => typeof value === 'string') ?? ''
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line
}

/** A time (RFC 3339) as people write it, in their own zone: `2026-01-31 14:05`. */
export function when(time: string): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return time
  const two = (n: number): string => String(n).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** From this many bytes on, the owner of a store is told how to make it smaller. */
export const LARGE_BYTES = 2 * 1024 ** 3

/** A number of bytes as people write it: `1.5 MiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const unit = bytes < 1024 ** 2 ? 'KiB' : bytes < 1024 ** 3 ? 'MiB' : 'GiB'
  const value = bytes / 1024 ** (unit === 'KiB' ? 1 : unit === 'MiB' ? 2 : 3)
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`
}

/** The number of digits that a short name shows. */
const SHORT = 8

/** The short name of an object, as the model and Pi's screen show it. Every command takes it in place of the ID. */
export function shortName(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, SHORT)
}

/** The number of characters of an ID that are shown after the name of its agent. */
const SHORT_BEHIND = 7

/**
 * The IDs' shortest beginnings that no other of them has: of at least eight characters, or of seven behind the name of an agent
 * (`claude-code:9f3a1b2`), so that one that was written down stays good when more sessions come. Every command takes them.
 */
export function shortened(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  return new Map(
    sorted.map((id, index) => {
      const others = [sorted[index - 1] ?? '', sorted[index + 1] ?? '']
      const shared = Math.max(...others.map((other) => commonLength(id, other)))
      const least = Math.max(SHORT, (/^[a-z-]+:/.exec(id)?.[0].length ?? 0) + SHORT_BEHIND)
      return [id, id.slice(0, Math.max(least, shared + 1))]
    }),
  )
}

function commonLength(left: string, right: string): number {
  let length = 0
  while (length < left.length && left[length] === right[length]) length += 1
  return length
}
