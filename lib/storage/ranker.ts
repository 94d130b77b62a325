import { reasonOf } from './error.ts'
import type { ContextPointer, Ranker } from './types.ts'

/** A ranker's answer, or why there is none. */
export type Ranking = { filepaths: string[] } | { reason: string }

/**
 * Asks a ranker, for at most `timeoutMs` milliseconds. Unknown and repeated paths are dropped from its answer; an
 * answer with only unknown paths counts as none. An empty answer means that nothing is relevant.
 */
export async function askRanker(ranker: Ranker, query: string, pointers: readonly ContextPointer[], timeoutMs: number): Promise<Ranking> {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const slow = new Promise<Ranking>((resolve) => {
    timer = setTimeout(() => {
      resolve({ reason: `it took longer than ${timeoutMs} ms` })
      controller.abort()
    }, timeoutMs)
  })
  const asked = (async () => known(await ranker(query, pointers, { signal: controller.signal }), pointers))()
  try {
    return await Promise.race([asked, slow])
  } catch (error) {
    return { reason: reasonOf(error) }
  } finally {
    clearTimeout(timer)
    // A rejection after the timeout must not end the process.
    asked.catch(() => undefined)
  }
}

function known(answer: unknown, pointers: readonly ContextPointer[]): Ranking {
  if (!Array.isArray(answer)) return { reason: 'its answer is not an array of file paths' }
  const paths = new Set(pointers.map((pointer) => pointer.filepath))
  const filepaths = [...new Set<string>(answer.filter((path) => paths.has(path)))]
  if (answer.length > 0 && filepaths.length === 0) return { reason: 'it named none of the pointers' }
  return { filepaths }
}
