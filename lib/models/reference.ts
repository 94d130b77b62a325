/** The lines of the engine that are recognized in a transcript, for reports to users. */

/** True for a result's text that is the reference to its output, with or without lines of later calls. */
export function isReference(text: string): boolean {
  return referenceId(text) !== undefined
}

/** The id in the reference to an output; undefined for any other text. */
export function referenceId(text: string): string | undefined {
  return /^toolcall_ref id=(\S+) tool=\S+ status=(?:ok|fail)(?: -> [^\n]+)?(?:\n|$)/.exec(text)?.[1]
}

/** The id in a result's header line and the length of the line; undefined for a result without a header. */
export function readHeader(text: string): { id: string; length: number } | undefined {
  const found = /^id=([0-9a-f]{8,})(?:\n|$)/.exec(text)
  return found?.[1] === undefined ? undefined : { id: found[1], length: found[0].length }
}

/** True for a text of a user or the model of which a roll has left the beginning. */
export function isBeginning(text: string): boolean {
  return /\n\[\.\.\. \d+ more chars: id=[0-9a-f]{11}\]$/.test(text)
}
