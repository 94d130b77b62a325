/** Gemini CLI: its start and the names of its tools. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from './agents.ts'
import type { Installed } from './installed.ts'

export function gemini(program: Installed): Agent {
  return {
    name: 'gemini',
    host: 'gemini-cli',
    program,
    lines: 240,
    ownBreaks: 0,
    // After a resume it sends its history in another form.
    repeats: false,
    args: (prompt, goesOn) => [...(goesOn ? ['--resume', 'latest'] : []), '--yolo', '--model', 'gemini-3.1-pro-preview', '-p', prompt],
    prepare(home, _cwd, url) {
      mkdirSync(join(home, '.gemini'), { recursive: true })
      writeFileSync(
        join(home, '.gemini', 'settings.json'),
        JSON.stringify({
          security: { auth: { selectedType: 'gemini-api-key' } },
          privacy: { usageStatisticsEnabled: false },
          general: { enableAutoUpdate: false },
        }),
      )
      return { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: 'true', ...this.more }
    },
    shell: (command) => ({ name: 'run_shell_command', args: { command } }),
    read: (file_path) => ({ name: 'read_file', args: { file_path } }),
    recall: (id) => ({ name: 'mcp_context_activate', args: { id } }),
    isMain: (request) => request.tools.length > 4,
    hasWhole: (output, text) => output.includes(text),
  }
}
