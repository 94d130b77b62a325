/** Gemini CLI: its start and the names of its tools. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onCleanUp } from '../../rig/cleanup.ts'
import type { Agent } from './agents.ts'
import type { Installed } from './installed.ts'

/** The ways in which it is logged in, with the type in its settings and the variables of each; `URL` is the provider's address. */
export const LOGINS = {
  key: ['gemini-api-key', { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: 'URL' }],
  google: ['oauth-personal', { GOOGLE_GENAI_USE_GCA: 'true', GOOGLE_CLOUD_ACCESS_TOKEN: 'none', CODE_ASSIST_ENDPOINT: 'URL' }],
  vertex: ['vertex-ai', { GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_API_KEY: 'none', GOOGLE_VERTEX_BASE_URL: 'URL' }],
} as const

export function gemini(program: Installed): Agent {
  return {
    name: 'gemini',
    host: 'gemini-cli',
    program,
    lines: 240,
    ownBreaks: 0,
    // After a resume it sends its history in another form.
    rewrites: true,
    repeats: false,
    args: (prompt, goesOn) => [...(goesOn ? ['--resume', 'latest'] : []), '--yolo', '--model', 'gemini-3.1-pro-preview', '-p', prompt],
    prepare(home, _cwd, url) {
      const [selectedType, variables] = LOGINS[this.login ?? 'key']
      const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value.replace('URL', url)]))
      // It reads no settings below a folder that others may write to.
      const runtime = mkdtempSync(join(process.cwd(), 'node_modules', '.gemini-'))
      onCleanUp(() => rmSync(runtime, { recursive: true, force: true }))
      mkdirSync(join(home, '.gemini'), { recursive: true })
      writeFileSync(
        join(home, '.gemini', 'settings.json'),
        JSON.stringify({
          security: { auth: { selectedType } },
          privacy: { usageStatisticsEnabled: false },
          general: { enableAutoUpdate: false },
        }),
      )
      return { ...env, GEMINI_CLI_TRUST_WORKSPACE: 'true', XDG_RUNTIME_DIR: runtime, ...this.more }
    },
    shell: (command) => ({ name: 'run_shell_command', args: { command } }),
    read: (file_path) => ({ name: 'read_file', args: { file_path } }),
    recall: (id) => ({ name: 'mcp_context_activate', args: { id } }),
    isMain: (request) => request.tools.length > 4,
    hasWhole: (output, text) => output.includes(text),
  }
}
