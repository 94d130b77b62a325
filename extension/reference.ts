/** The two lines of the engine that the extension recognizes in a transcript, for the person's report. */

/** Whether a result's text is the line that stands in place of its output, with or without lines of later calls. */
export function isReference(text: string): boolean {
  return /^toolcall_ref id=\S+ tool=\S+ status=(?:ok|fail)(?:\n|$)/.test(text)
}

/** The id that a result's header line names, and how long the line is; undefined for a result without header. */
export function readHeader(text: string): { id: string; length: number } | undefined {
  const found = /^id=([0-9a-f]{8,})(?:\n|$)/.exec(text)
  return found?.[1] === undefined ? undefined : { id: found[1], length: found[0].length }
}
