/** Anthropic's threads, which keep a conversation at the provider: it would not see our edits. */

/** A body that begins no thread. */
export function withoutThread(body: Record<string, unknown>): Record<string, unknown> {
  if (body['thread'] === undefined) return body
  const { thread: _, ...rest } = body
  return rest
}

/** A value of the header `anthropic-beta` without those of threads. */
export function withoutThreads(betas: string): string {
  return betas
    .split(',')
    .filter((one) => !one.trim().startsWith('message-threads-'))
    .join(',')
}
