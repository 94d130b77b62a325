/** The starts of programs by `run`, in homes of their own. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { programOf } from '../../lib/gateway/programs.ts'
import type { Launch, Program } from '../../lib/gateway/program-settings.ts'
import { folder } from '../core/setup.ts'

export const gateway = { url: 'http://127.0.0.1:1/T', mcpUrl: 'http://127.0.0.1:1/T/_context/mcp', secret: 'S' }

/** The start of a command where these files and variables are; it writes none. The project is the folder `a/b` of the home, which both may name as HOME. */
export function launch(command: string, files: Record<string, string> = {}, env: Record<string, string> = {}): Program & Launch {
  const home = folder()
  const cwd = join(home, 'a', 'b')
  mkdirSync(cwd, { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true })
    writeFileSync(join(home, name), content.replaceAll(/HOME(?=[/"])/g, home))
  }
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replace('HOME', home)]))
  const [program = '', ...args] = command.split(' ')
  const found = programOf(program, args, { cwd, env: { HOME: home, QWEN_CODE_SYSTEM_SETTINGS_PATH: join(home, 'etc', 'settings.json'), ...own } })
  const seen = readdirSync(home, { recursive: true }).length
  const launched = found.launch(gateway, '/tmp/F')
  expect(readdirSync(home, { recursive: true }).length).toBe(seen)
  return { ...found, ...launched }
}
