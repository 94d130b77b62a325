/** Packages of the registry that bring tools or change the context, beside ours. With CONTEXT_PROGRAMS=1 they are installed. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { FOLDER, installInto } from '../gateway/installed.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { command, handle, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

/** Each package, and its tools in the first request. */
const PACKAGES: Record<string, string[]> = {
  'pi-subagents': ['subagent', 'bg_wait', 'subagent_supervisor'],
  'pi-mcp-adapter': ['mcp', 'mcpScript'],
  'pi-web-access': ['web_search', 'fetch_content'],
  'pi-lens': ['lens_diagnostics', 'symbol_search', 'read_symbol'],
  'pi-plan-mode': [],
  'pi-sandbox': [],
  'pi-prompt-template-model': [],
  // It has its own `read`, so that ours has other tools from the start.
  'pi-fff': ['find_files', 'fff_multi_grep', 'activate'],
  '@aliou/pi-processes': ['process'],
  '@tmustier/pi-ralph-wiggum': ['ralph_start', 'ralph_done'],
  '@tintinweb/pi-subagents': ['Agent', 'steer_subagent'],
  'pi-btw': [],
}

const ASKED = process.env['CONTEXT_PROGRAMS'] ?? ''
const ARE_ASKED = ['1', 'long'].includes(ASKED) || ASKED.split(',').includes('packages')
if (!ARE_ASKED) process.stderr.write('skipped: packages of Pi (CONTEXT_PROGRAMS=packages installs and runs them)\n')

/** The files of a package's extensions. */
function extensionsOf(name: string): string[] {
  const folder = join(FOLDER, name.replace(/\W/g, '_'))
  const root = join(folder, 'node_modules', name)
  if (!existsSync(root)) installInto(folder, name)
  const { pi } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { pi: { extensions: string[] } }
  return pi.extensions.map((file) => join(root, file))
}

describe.runIf(ARE_ASKED).each(Object.entries(PACKAGES))('%s', (name, tools) => {
  test.each(['before', 'after'])(
    'loaded %s ours: both work, and collapsed outputs can be restored',
    async (order) => {
      const others = extensionsOf(name)
      const reads = Array.from({ length: 10 }, (_, n) => `f${n}`)
      const back = name === 'pi-fff' ? (['activate', { id: handle('f0') }, 'back'] as const) : (['read', { path: `id=${handle('f0')}` }, 'back'] as const)
      const { server, home, load } = await setUp((_request, n) => {
        if (n < 20 && n % 2 === 0) return calls(['read', { path: `f${n / 2}.txt` }, `f${n / 2}`])
        return n === 20 ? calls([...back]) : `answer ${n}.`
      })
      for (const read of reads) put(home, `${read}.txt`, lines(read, 120))
      const rpc = await startRpc({ ...load, extension: order === 'before' ? [...others, load.extension] : [load.extension, ...others] })
      for (const read of reads) await rpc.prompt(`read ${read}`)
      await command(rpc, '/context roll')
      await rpc.prompt('bring it back')
      put(home, 'f9.txt', lines('other', 120))
      await rpc.prompt('continue')
      const last = server.requests.at(-1)!
      expect(last.tools).toEqual(expect.arrayContaining(['read', 'bash', 'edit', 'write', ...tools]))
      const results = resultsById(last)
      expect(reads.filter((read) => results.get(read)?.startsWith('toolcall_ref id=')).length).toBeGreaterThan(4)
      expect(results.get('back')).toContain('f0 line 100:')
      expect(last.messages.filter(({ role, json }) => role === 'user' && /stale id=\w+ path=\S+f9\.txt/.test(json))).toHaveLength(1)
      expect(rpc.events.filter((event) => JSON.stringify(event).includes('Another extension has a tool with a name of ours'))).toEqual([])
      await rpc.close()
    },
    120_000,
  )
})
