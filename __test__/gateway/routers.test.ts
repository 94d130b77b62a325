/** Routers beside the gateway, as programs of their own, in both orders, before a provider that refuses what the API refuses. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { folder } from '../core/setup.ts'
import { installedRouter } from './installed.ts'
import type { RouterName } from './installed.ts'
import { AnthropicLoop, callTool, gatewayTo, long } from './support.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

const MODEL = 'claude-sonnet-4-5'

/** A router that sends everything to one provider. */
interface Router {
  name: RouterName
  program: string | undefined
  /** The provider's path, directly and behind the gateway. */
  path: string
  behindGateway: string
  /** Starts it before the provider at an address. */
  start(address: string, home: string, port: number): ChildProcess
}

const ROUTERS: Router[] = [
  {
    name: 'claude-code-router',
    program: installedRouter('claude-code-router'),
    path: '/v1/chat/completions',
    behindGateway: '/openai/v1/chat/completions',
    start(address, home, port) {
      mkdirSync(join(home, '.claude-code-router'))
      const config = {
        LOG: false,
        HOST: '127.0.0.1',
        PORT: port,
        NON_INTERACTIVE_MODE: true,
        Providers: [{ name: 'rig', api_base_url: address, api_key: 'sk-router', models: [MODEL] }],
        Router: { default: `rig,${MODEL}` },
      }
      writeFileSync(join(home, '.claude-code-router', 'config.json'), JSON.stringify(config))
      const { node } = findRuntime()
      return spawn(node, [this.program!, 'start'], { cwd: home, env: { HOME: home, PATH: dirname(node) }, stdio: 'ignore' })
    },
  },
  {
    name: 'litellm',
    program: installedRouter('litellm'),
    path: '',
    behindGateway: '/anthropic',
    start(address, home, port) {
      const config = { model_list: [{ model_name: MODEL, litellm_params: { model: `anthropic/${MODEL}`, api_base: address, api_key: 'sk-router' } }] }
      writeFileSync(join(home, 'config.yaml'), JSON.stringify(config))
      const env = {
        HOME: home,
        PATH: `${dirname(this.program!)}:${process.env['PATH'] ?? ''}`,
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        LITELLM_TELEMETRY: 'False',
        LITELLM_MASTER_KEY: 'sk-secret',
      }
      return spawn(this.program!, ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', String(port)], { cwd: home, env, stdio: 'ignore' })
    },
  },
]

/** Starts a router. Returns its address once it takes connections. */
async function started(router: Router, provider: string): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  const child = router.start(provider, folder(), port)
  onCleanUp(() => void child.kill('SIGKILL'))
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return `http://127.0.0.1:${port}`
    if (child.exitCode !== null) throw new Error(`${router.name} has ended: ${child.exitCode}`)
    // It says nothing when it listens.
    await setTimeout(50)
  }
}

/** Fifteen prompts with two calls each. */
async function talk(loop: AnthropicLoop): Promise<void> {
  for (let n = 0; n < 15; n += 1) {
    loop.messages.push({ role: 'user', content: [{ type: 'text', text: `prompt ${n}` }] })
    for (const part of ['a', 'b']) await loop.call('Bash', { command: `cat ${part}${n}` }, long(`${part}${n}`))
    loop.messages.push({ role: 'assistant', content: [{ type: 'text', text: `done ${n}` }] })
  }
}

for (const router of ROUTERS) {
  describe.skipIf(router.program === undefined)(router.name, { timeout: 300_000 }, () => {
    test.each(['behind the gateway', 'before the gateway'])('%s', async (order) => {
      const server = await startModelServer(() => 'ok')
      const isBehind = order === 'behind the gateway'
      const routed = isBehind ? await started(router, `${server.url}${router.path}`) : undefined
      const { gateway } = await gatewayTo(routed ?? server.url)
      const url = routed ?? (await started(router, `${gateway.url.replace(/\/anthropic$/, '')}${router.behindGateway}`))
      const loop = new AnthropicLoop({ url: isBehind ? gateway.url : url })
      await talk(loop)
      server.check()
      expect(server.requests.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => 200))
      const { raw, messages, headers } = server.requests.at(-1)!
      expect(raw.length).toBeLessThan(0.3 * JSON.stringify(loop.messages).length)
      // The agent's key stays with the router.
      expect(JSON.stringify(headers)).not.toContain('sk-secret')
      // Each change of the past is a roll.
      const breaks = rewritten(server.requests, ({ text, calls }) => JSON.stringify([text, calls])).length
      const [session] = gateway.ledger.sessions
      expect(breaks).toBeLessThanOrEqual(session!.rolls.length)
      // Only before the router does the gateway know the agent and its session.
      expect([gateway.ledger.sessions.length, session!.session === 'claude-code:session-1', session!.host]).toEqual([
        1,
        isBehind,
        isBehind ? 'claude-code' : 'agent',
      ])
      const [, id] = /toolcall_ref id=(\w+)/.exec(messages.map(({ text }) => text).join('\n'))!
      expect(await callTool(gateway, 'activate', { id })).toContain('line 119 of an output')
      process.stderr.write(
        `${router.name} ${order}: ${raw.length} of ${JSON.stringify(loop.messages).length} characters, ${session!.rolls.length} rolls, ${breaks} breaks\n`,
      )
    })
  })
}
