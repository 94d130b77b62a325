/** The status line of Claude Code, in the user's settings file: one member of a JSON document that otherwise stays as it is. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { Untouched } from './edited-file.ts'
import type { Environment } from '../core/index.ts'

/** The user's settings file of Claude Code. */
export function claudeSettings(env: Environment): string {
  const own = env['CLAUDE_CONFIG_DIR']
  return join(own !== undefined && own !== '' ? own : join(env['HOME'] ?? homedir(), '.claude'), 'settings.json')
}

/** The command of the status line. */
const COMMAND = 'pi-context-manager status-line'

/** The member as it is written; what is around it decides the line breaks. */
const MEMBER = `"statusLine": ${JSON.stringify({ type: 'command', command: COMMAND })}`

/** Tells our status line in the settings from the user's. Throws {@link Untouched} for anything but a JSON object. */
export function statusLineIn(text: string): 'ours' | 'own' | undefined {
  const found = settingsIn(text)['statusLine']
  if (found === undefined) return undefined
  return isFields(found) && found['command'] === COMMAND ? 'ours' : 'own'
}

/** The settings with our status line, which goes first; a new document if there is none. */
export function withStatusLine(text: string | undefined): string {
  if (text === undefined || text.trim() === '') return `${text ?? ''}${DOCUMENT}`
  const settings = settingsIn(text)
  const at = text.indexOf('{') + 1
  const [space = ''] = /^\s*/.exec(text.slice(at)) ?? []
  // The indent of the first member; without one, all stands on one line.
  return Object.keys(settings).length === 0 ? `${text.slice(0, at)}${MEMBER}${text.slice(at)}` : `${text.slice(0, at)}${space}${MEMBER},${text.slice(at)}`
}

const DOCUMENT = `{\n  ${MEMBER}\n}\n`

/** The settings without our status line, byte for byte as they were; undefined if nothing would be left of a document that we made. */
export function withoutStatusLine(text: string): string | undefined {
  if (text.trimStart() === DOCUMENT) return text.slice(0, text.length - DOCUMENT.length) || undefined
  const at = text.indexOf('{') + 1
  const rest = text.slice(at)
  const [space = ''] = /^\s*/.exec(rest) ?? []
  if (rest.startsWith(`${space}${MEMBER},`)) return text.slice(0, at) + rest.slice(space.length + MEMBER.length + 1)
  if (rest.startsWith(MEMBER)) return text.slice(0, at) + rest.slice(MEMBER.length)
  // Claude Code has written its settings again since, in its own form.
  const { statusLine: _, ...others } = settingsIn(text)
  return `${JSON.stringify(others, null, 2)}${text.endsWith('\n') ? '\n' : ''}`
}

function settingsIn(text: string): Fields {
  let found: unknown
  try {
    found = text.trim() === '' ? {} : JSON.parse(text.replace(/^\u00EF\u00BB\u00BF/, ''))
  } catch {
    throw new Untouched("it is not JSON, so its settings can't be read")
  }
  if (!isFields(found)) throw new Untouched('it is not a JSON object')
  return found
}
