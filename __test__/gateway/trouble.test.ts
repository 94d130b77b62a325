/** A gateway whose files fail it: its agents continue, and its user hears why. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startGateway } from '../../lib/gateway/gateway.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { AnthropicLoop, gatewayTo, JSON_TYPE, long, upstream } from './support.ts'

afterEach(cleanUp)

test('one whose store vanishes with its folder serves its agent, and ends with a sentence', async () => {
  const { url, seen } = await upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{}'))
  const place = folder()
  const { gateway, warnings } = await gatewayTo(url, { store: { kind: 'sqlite', path: join(place, 'context.db') } })
  const loop = new AnthropicLoop(gateway)
  for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  for (const name of readdirSync(place)) rmSync(join(place, name), { recursive: true })
  await loop.call('Bash', { command: 'cat more' }, long('more'))
  expect(seen.at(-1)!.body.toString()).toContain('more line 119')
  await gateway.close()
  expect(warnings).toEqual([
    expect.stringContaining('was moved, deleted or replaced after it was opened'),
    expect.stringMatching(/a session could not be closed: .*was moved, deleted or replaced/),
  ])
})

test('bills that can not be noted are told once', async () => {
  const { url } = await upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{"usage":{"input_tokens":1,"output_tokens":1}}'))
  const billsPath = join(folder(), 'bills.jsonl')
  mkdirSync(billsPath)
  const { gateway, warnings } = await gatewayTo(url, { billsPath })
  const loop = new AnthropicLoop(gateway)
  for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat n${n}` }, 'short')
  await gateway.close()
  expect(warnings).toEqual([expect.stringMatching(/what calls cost can't be noted, so "usage" lacks them: EISDIR/)])
})

test.each([
  ['SSL_CERT_FILE', { SSL_CERT_FILE: '/no/such/file' }],
  ['CODEX_CA_CERTIFICATE', { CODEX_CA_CERTIFICATE: '/no/such/file' }],
  ['NODE_EXTRA_CA_CERTS', { SSL_CERT_FILE: 'package.json', NODE_EXTRA_CA_CERTS: '/no/such/file' }],
])('certificates that can not be read come with the variable that names them: %s', async (name, env) => {
  const { url } = await upstream((_, response) => response.end())
  await expect(startGateway({ open: { store: { kind: 'memory' } }, upstreams: { anthropic: url }, env })).rejects.toThrow(
    `/no/such/file can't be read: no such file or directory; the variable ${name} names it`,
  )
})
