/** Which models take new tools in mid-conversation, with the cached prompt before them still valid. */

/**
 * By name, as in Pi's model catalogues of November 2026 (0.87.1): those with `supportsMidConvoSystemMessages` and a way to
 * add tools. Where Pi itself runs, its catalogue decides.
 */
const APPENDING = /(?:^|\/)(?:claude-(?:fable-5|opus-(?:4-[89]|[5-9]))|gpt-(?:5\.[4-9]|[6-9])|kimi-k3)/

/** Returns whether a model takes new tools in mid-conversation. `model` is its name, with or without its provider. */
export function appendsTools(model: string): boolean {
  return APPENDING.test(model)
}
