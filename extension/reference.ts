/** The two lines of the engine that the extension recognizes in a transcript, for the user's report. */

/** Whether a result's text is the reference to its output. */
export function isReference(text: string): boolean {
  return /^toolcall_ref id=\S+ tool=\S+ status=(?:ok|fail)$/.test(text)
}

/** The id in a result's header line and the length of the line; undefined for a result without a header. */
export function readHeader(text: string): { id: string; length: number } | undefined {
  const found = /^id=([0-9a-f]{8,})(?:\n|$)/.exec(text)
  return found?.[1] === undefined ? undefined : { id: found[1], length: found[0].length }
}
