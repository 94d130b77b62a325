/** The line below Claude Code's prompt: what the gateway writes for it, and what is printed. */
import { execFile } from 'node:child_process'
import { readFileSync, statSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { keepStatus } from '../../lib/cli/status-file.ts'
import { shareText } from '../../lib/ui/saving.ts'
import { accountOf } from '../../lib/gateway/saving.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, gatewayTo, long } from '../gateway/support.ts'
import { program, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

const ID = '9f3a1b2c-1111-4222-8333-444455556666'

/** Resolves as soon as a file has this text. */
function reads(path: string, wanted: (text: string) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      try {
        if (!wanted(readFileSync(path, 'utf8'))) return
      } catch {
        return
      }
      watcher.close()
      resolve()
    }
    const watcher = watch(dirname(path), look)
    look()
  })
}

function printed(status: string | undefined, input: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const [node, args] = program('status-line')
  return new Promise((resolve) => {
    const env = { HOME: '/', ...(status !== undefined && { PI_CONTEXT_STATUS: status }) }
    execFile(node, args, { env }, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })).stdin?.end(input)
  })
}

test('it says what was saved in this session, as the account does, and when text leaves next', async () => {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url, { program: 'claude-code' })
  const path = join(temporaryFolder(), 'status.json')
  const end = keepStatus(gateway, path)
  const loop = new AnthropicLoop(gateway, ID)
  loop.messages.push({ role: 'user', content: 'begin' })
  for (let n = 0; n < 40; n += 1) await loop.call('Read', { file_path: `/w/n${n}.ts` }, long(`n${n}`))
  const account = shareText(accountOf(gateway.ledger.sessions), (dollars) => `$${dollars.toFixed(2)}`)
  expect(account).toMatch(/^saved \$\d+\.\d\d \(\d+ %\)$/)
  await reads(path, (text) => text.includes(`"${ID}":"${account}`))
  expect(statSync(path).mode & 0o777).toBe(0o600)
  end()
  const line = (JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>)[ID]
  expect(await printed(path, JSON.stringify({ session_id: ID, model: {} }))).toEqual({ code: 0, stdout: `${line}\n`, stderr: '' })
})

test('it prints nothing and does not fail where it has nothing to say', async () => {
  const path = join(temporaryFolder(), 'status.json')
  const input = JSON.stringify({ session_id: ID })
  for (const [status, text, given] of [
    [undefined, '', input],
    ['/nowhere/status.json', '', input],
    [path, 'rubbish', input],
    [path, '[]', input],
    [path, JSON.stringify({ [ID]: 5 }), input],
    [path, JSON.stringify({ [ID]: 'a line' }), 'rubbish'],
    [path, JSON.stringify({ [ID]: 'a line' }), '{"session_id":"toString"}'],
  ] as const) {
    writeFileSync(path, text)
    expect([text, given, await printed(status, given)]).toEqual([text, given, { code: 0, stdout: '', stderr: '' }])
  }
  writeFileSync(path, JSON.stringify({ [ID]: 'a \u001b[31mline\n' }))
  expect((await printed(path, input)).stdout).toBe('a \\u001b[31mline\\u000a\n')
})
