/** One long session of each host on a provider that binds its reasoning, and what it cost the model. */
import { appendFileSync } from 'node:fs'
import { Projection } from '../../lib/projection/harness.ts'
import type { HostOptions } from '../../lib/hosts/context.ts'
import { modelNamed } from '../../lib/models/model.ts'
import type { Binding } from '../../lib/models/rules.ts'
import { folder, FILESYSTEM, opened } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import { SOON } from '../../rig/extension.ts'
import { fateOf } from '../../rig/fate.ts'
import type { Fate } from '../../rig/fate.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { PlainLoop } from '../../rig/plain-loop.ts'
import { BINDING_BETA } from '../../rig/strict.ts'
import { drivers } from './drivers.ts'
import { BOUND } from './models.ts'
import type { SignedFormat } from './models.ts'
import { output, thoughtful } from './script.ts'

/** The parameters of a session. */
interface StrictSession {
  host: string
  format: SignedFormat
  /** Requests ask for drops. */
  asks: boolean
  /**
   * The host's declaration about its model. Default: the model's name alone, and `drops` where no code can see that requests ask
   * for them.
   */
  binding?: Binding
  /** The weight of a missed use (`stay.weight`). Default: the product's own. */
  weight?: number
  /** Turns of the user, and calls in each. */
  turns: number
  calls: number
}

/** The outcome of a session. */
interface StrictOutcome extends Fate {
  server: ModelServer
  rolls: number
  warnings: string[]
  /** Prompts that failed. */
  failed: number
}

/** The prompts of a session: each makes `calls` calls, one after the other. */
function promptsOf(turns: number, calls: number): string[] {
  return Array.from({ length: turns }, (_, turn) => `show ${Array.from({ length: calls }, (_, n) => `t${turn}n${n}`).join(' ')}`)
}

/** Runs a session to its end. A refused prompt is given again where the host does not continue by itself. */
export async function strictSession(session: StrictSession): Promise<StrictOutcome> {
  const server = await startModelServer(thoughtful, {})
  const warnings: string[] = []
  let [rolls, failed] = [0, 0]
  const binding = session.binding ?? (session.asks && session.host === 'pi-agent-core' ? 'drops' : undefined)
  const model = modelNamed(BOUND[session.format], { contextWindow: 200_000, ...(binding === undefined ? {} : { binding }) })
  const said = binding === undefined ? withoutBinding(model) : model
  const stay = session.weight === undefined ? SOON : { ...SOON, weight: session.weight }
  const options = { model: said, stay, systemTokens: 3000, onWarning: (text: string) => void warnings.push(text), onRoll: () => void (rolls += 1) }
  const host = session.host === 'loop' ? await plainLoop(server, session, options) : await realHost(server, session, options)
  for (const prompt of promptsOf(session.turns, session.calls)) {
    try {
      await host.prompt(prompt)
    } catch (error) {
      failed += 1
      await host.failed(error)
    }
  }
  server.check()
  const fate = fateOf(server.requests, (text) => text.startsWith('show '))
  note(session, { ...fate, rolls })
  return { ...fate, server, rolls, warnings, failed }
}

interface Host {
  prompt(text: string): Promise<void>
  failed(error: unknown): Promise<void>
}

interface Options {
  stay: { debtCap: 'none'; weight?: number }
  model: ReturnType<typeof modelNamed>
  systemTokens: number
  onWarning: (text: string) => void
  onRoll: () => void
}

/** Returns the declaration of most hosts: nothing about the binding, so that it is known by the model's name. */
function withoutBinding(model: ReturnType<typeof modelNamed>): ReturnType<typeof modelNamed> {
  const { binding: _, ...rest } = model
  return rest as ReturnType<typeof modelNamed>
}

async function realHost(server: ModelServer, { host, format, asks }: StrictSession, options: Options): Promise<Host> {
  const context: HostOptions = { sessionId: 's', cwd: folder(), store: { kind: 'memory' }, filesystemId: FILESYSTEM, watch: false, ...options }
  const driver = await drivers[host]!({ url: `${server.url}/v1`, context, show: output, format, asks })
  onCleanUp(() => driver.context?.close())
  // Our code gets no report of a failure: the session continues by itself.
  return { prompt: (text) => driver.prompt(text), failed: async () => {} }
}

/** Anthropic's or OpenAI's format with nothing but `fetch`. */
async function plainLoop(server: ModelServer, { format, asks }: StrictSession, { stay, ...options }: Options): Promise<Host> {
  const projection = new Projection(await opened({ cwd: folder(), stay }), { shortens: true, ...options })
  const drops = { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } }
  if (asks) projection.asked(drops)
  const loop = new PlainLoop({
    server,
    api: format,
    model: BOUND[format],
    run: (_, { name }) => output(name),
    prepare: (messages) => projection.transform(messages),
    ...(asks ? { headers: { 'anthropic-beta': BINDING_BETA }, body: drops } : {}),
  })
  return {
    prompt: (text) => loop.prompt(text),
    failed: async (error) => {
      if (!projection.refused(error)) throw error
      await loop.resume()
    },
  }
}

/** Writes the figures of docs/reasoning.md down where CONTEXT_FIGURES names a file. */
function note({ host, format, asks, binding }: StrictSession, figures: Fate & { rolls: number }): void {
  const file = process.env['CONTEXT_FIGURES']
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ host, format, asks, binding, ...figures })}\n`)
}
