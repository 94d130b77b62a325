/**
 * Each example as it is written, in an empty folder with the packed packages and the host's newest package from the
 * registry. With CONTEXT_INSTALLED=1 only: it needs the network and some minutes.
 */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { installHere } from '../../scripts/release/install.mjs'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { calls } from '../../rig/reply.ts'
import { output } from './script.ts'

afterEach(cleanUp)

const execute = promisify(execFile)
const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))

/** Runs a program without input: one that waits for it would wait for ever. */
function run(file: string, args: string[], options: { cwd: string; env?: Record<string, string> }) {
  const running = execute(file, args, { ...options, encoding: 'utf8', maxBuffer: 1 << 26 })
  running.child.stdin?.end()
  return running
}

/** Returns the packages that an example needs. */
function needs(example: string): string[] {
  const line = /npm install pi-context-manager([^,\n]*)/.exec(readFileSync(join(EXAMPLES, example), 'utf8'))
  return (line?.[1] ?? '')
    .trim()
    .split(/\s+/)
    .filter((name) => name !== '')
}

/** An empty folder with the packages and what else is needed, in the newest version. */
async function installed(packages: readonly string[]): Promise<{ project: string; versions: string }> {
  const project = await installHere(folder())
  if (packages.length > 0) {
    await run('npm', ['install', ...packages.map((name) => `${name}@latest`), '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: project })
  }
  const versions = packages.map((name) => `${name} ${JSON.parse(readFileSync(join(project, 'node_modules', name, 'package.json'), 'utf8')).version}`)
  return { project, versions: versions.join(', ') }
}

describe.skipIf(process.env['CONTEXT_INSTALLED'] !== '1')('from the packed packages', { timeout: 600_000 }, () => {
  test.each(['ai-sdk.mjs', 'pi-agent-core.mjs', 'openai-agents.mjs', 'langchain.mjs'])('%s', async (example) => {
    const { project, versions } = await installed(needs(example))
    process.stderr.write(`${example}: ${versions}\n`)
    copyFileSync(join(EXAMPLES, example), join(project, example))
    writeFileSync(join(project, 'a.txt'), output('a'))
    const server = await startModelServer([calls(['read', { path: 'a.txt' }]), 'a.txt has 40 lines'])
    const { stdout, stderr } = await run(findRuntime().node, [example, 'Read a.txt'], {
      cwd: project,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: folder(),
        OPENAI_BASE_URL: server.baseUrl('openai-completions'),
        OPENAI_API_KEY: 'none',
        MODEL: 'scripted',
      },
    })
    expect(stdout.trim()).toBe('a.txt has 40 lines')
    expect(stderr).not.toContain('pi-context-manager')
    server.check()
    expect(server.requests[1]!.messages.flatMap(({ results }) => results)[0]!.text).toBe(output('a'))
    expect([...server.requests[0]!.tools].sort()).toEqual(['activate', 'read'])
  })

  test.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('opencode.json', async () => {
    const { project, versions } = await installed(['zod', 'opencode-linux-x64'])
    process.stderr.write(`opencode.json: ${versions}\n`)
    copyFileSync(join(EXAMPLES, 'opencode.json'), join(project, 'opencode.json'))
    writeFileSync(join(project, 'a.txt'), output('a'))
    const script = [calls(['bash', { command: 'cat a.txt', description: 'shows a file' }]), 'a.txt has 40 lines']
    let answered = 0
    const server = await startModelServer(({ tools }) => (tools.length === 0 ? 'a title' : script[answered++]!))
    const home = folder()
    const model = { name: 'scripted', tool_call: true, limit: { context: 200_000, output: 1000 } }
    const options = { baseURL: server.baseUrl('openai-completions'), apiKey: 'none' }
    mkdirSync(join(home, 'config', 'opencode'), { recursive: true })
    // The person's own settings: the model, and what may be done without asking.
    const own = {
      model: 'scripted/scripted',
      permission: 'allow',
      provider: { scripted: { npm: '@ai-sdk/openai-compatible', name: 'scripted', options, models: { scripted: model } } },
    }
    writeFileSync(join(home, 'config', 'opencode', 'opencode.json'), JSON.stringify(own))
    const { stdout, stderr } = await run(join(project, 'node_modules', 'opencode-linux-x64', 'bin', 'opencode'), ['run', '--print-logs', 'Read a.txt'], {
      cwd: project,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        XDG_DATA_HOME: join(home, 'data'),
        XDG_CONFIG_HOME: join(home, 'config'),
        XDG_STATE_HOME: join(home, 'state'),
        XDG_CACHE_HOME: join(home, 'cache'),
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        npm_config_offline: 'true',
      },
    })
    expect(stdout).toContain('a.txt has 40 lines')
    expect(stderr).not.toContain('failed to load plugin')
    server.check()
    const [first] = server.requests.filter(({ tools }) => tools.length > 0)
    expect(first!.tools).toContain('activate')
  })
})
