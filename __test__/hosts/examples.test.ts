/** The examples run as they are written: with the addon, and without it as if we were not there. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { folder, write } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { calls } from '../../rig/reply.ts'
import { READS_A, startPlainServer } from './plain-server.ts'
import { output } from './script.ts'

afterEach(cleanUp)

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

async function run(node: string, example: string, url: string, env: Record<string, string> = {}) {
  const cwd = folder()
  write(cwd, 'a.txt', output('a'))
  return execute(node, [join(root, 'examples', example), 'Read a.txt'], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none', MODEL: 'scripted', ...env },
  })
}

const EXAMPLES = ['ai-sdk.mjs', 'pi-agent-core.mjs', 'openai-agents.mjs', 'langchain.mjs']

test.each(EXAMPLES)('%s', async (example) => {
  const server = await startModelServer([calls(['read', { path: 'a.txt' }]), 'a.txt has 40 lines'])
  const { stdout, stderr } = await run(findRuntime().node, example, server.baseUrl('openai-completions'))
  expect(stdout.trim()).toBe('a.txt has 40 lines')
  expect(stderr).not.toContain('pi-context-manager')
  server.check()
  expect(server.requests[1]!.messages.flatMap(({ results }) => results)[0]!.text).toBe(output('a'))
  expect([...server.requests[0]!.tools].sort()).toEqual(['activate', 'read'])
})

test.each(EXAMPLES)('%s without the addon', async (example) => {
  const server = await startModelServer([calls(['read', { path: 'a.txt' }]), 'a.txt has 40 lines'])
  const nowhere = { NAPI_RS_NATIVE_LIBRARY_PATH: '/nowhere/context.node' }
  const { stdout, stderr } = await run(findRuntime().node, example, server.baseUrl('openai-completions'), nowhere)
  expect(stdout.trim()).toBe('a.txt has 40 lines')
  expect(stderr.split('pi-context-manager: the agent continues without it').length, stderr).toBe(2)
  server.check()
})

test('messages.mjs, in plain JavaScript on this Node', async () => {
  const { url, requests } = await startPlainServer(READS_A)
  const { stdout } = await run(process.execPath, 'messages.mjs', url)
  expect(stdout.trim()).toBe('a.txt has 40 lines')
  expect(requests[1]!.messages.at(-1)!.content).toBe(output('a'))
})
