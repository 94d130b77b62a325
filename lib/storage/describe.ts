/** The longest part of one argument that a description keeps, in UTF-16 units. */
const ARGUMENT_LENGTH = 200

/**
 * The default description of a call: the tool's name split into lower-case words (at case changes and at anything
 * that is neither a letter nor a digit), then its top-level string arguments in their order, each cut to 200 UTF-16
 * units. `readFile({ path: 'src/a.ts' })` is described as `read file src/a.ts`.
 */
export function describeCall(toolName: string, args: Record<string, unknown>): string {
  const words = toolName
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .trim()
    .toLowerCase()
  const strings = Object.values(args).filter((value): value is string => typeof value === 'string' && value !== '')
  return [words, ...strings.map(shortened)].filter((part) => part !== '').join(' ')
}

function shortened(text: string): string {
  if (text.length <= ARGUMENT_LENGTH) return text
  // Not between the two halves of a character.
  const unit = text.charCodeAt(ARGUMENT_LENGTH - 1)
  return text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? ARGUMENT_LENGTH - 1 : ARGUMENT_LENGTH)
}
