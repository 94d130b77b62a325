/** Files and commands in Codex's patches and scripts. */

const FILE_LINE = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$/gm

/** The paths that a patch (`*** Begin Patch`) adds, changes, moves or deletes, each once. Empty for any other text. */
export function patchedFiles(text: string): string[] {
  if (!text.includes('*** Begin Patch')) return []
  // In a script, the patch is a string, and its line breaks may be written as `\n`.
  const plain = /\n\*\*\* /.test(text) ? text : text.replaceAll('\\n', '\n')
  return [...new Set([...plain.matchAll(FILE_LINE)].map((found) => found[1] as string))]
}

const COMMAND = /\bexec_command\(\s*\{[^{}]*?\bcmd["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\$]|\\.)*`)/g

/** The shell commands that a script of Codex's `exec` tool runs, as far as they are written out in it. */
export function scriptCommands(text: string): string[] {
  return [...text.matchAll(COMMAND)].map((found) => literal(found[1] as string))
}

/** The value of a JavaScript string without substitutions. Escapes other than those of JSON stay as written. */
function literal(source: string): string {
  const inner = source.slice(1, -1)
  const escaped = source.startsWith('"') ? inner : inner.replace(/\\(['`])/g, '$1').replace(/(?<!\\)"/g, '\\"')
  try {
    return JSON.parse(`"${escaped.replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`) as string
  } catch {
    return inner
  }
}
