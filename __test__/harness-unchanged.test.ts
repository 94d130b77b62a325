/** Behind a message that the host has changed, those that it has left as they were are not read again, and nothing else is sent for them. */
import { afterEach, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { Projection } from '../lib/projection/harness.ts'
import type { Shape, ShapeName } from '../lib/projection/harness.ts'
import { shapeNamed } from '../lib/projection/shapes.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { random } from '../rig/random.ts'
import { folder, FILESYSTEM } from './core/setup.ts'
import { written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

async function projection(shape: Shape, cwd: string): Promise<Projection> {
  const manager = await ContextManager.open({ sessionId: 's', cwd, store: { kind: 'memory' }, filesystemId: FILESYSTEM, watch: false })
  onCleanUp(() => manager.close())
  let now = 0
  return new Projection(manager, { shape, model: MODEL, shortens: true, now: () => (now += 1_000), onWarning: (warning) => expect.unreachable(warning) })
}

function output(call: number, lines: number): string {
  return Array.from({ length: lines }, (_, line) => `output ${call} line ${line} of what a tool has said ${(call * 7919 + line * 31) % 10007}`).join('\n')
}

const SHAPES: ShapeName[] = ['anthropic', 'openai-chat', 'pi', 'ai-sdk']

test.each(SHAPES)('%s: of a conversation whose first message changes with each call, only that and what is new is read', async (name) => {
  const base = shapeNamed(name)
  let read = 0
  const one = await projection({ ...base, read: (messages, at) => ((read += 1), base.read(messages, at)) }, folder())
  const steps: Step[] = [{ user: 'begin' }]
  const counts: number[] = []
  for (let call = 0; call < 40; call += 1) {
    steps[0] = { user: `begin, it is ${call}` }
    steps.push({ calls: [{ id: `c${call}`, name: 'bash', args: { command: `run ${call}` }, output: output(call, 20) }] })
    if (call % 8 === 7) steps.push({ text: 'done', calls: [] }, { user: `next ${call}` })
    read = 0
    await one.transform(steps.flatMap((step) => written[name](step, 1)))
    counts.push(read)
  }
  expect(Math.max(...counts)).toBeLessThanOrEqual(8)
})

/** Changes a conversation as a host may do it before a call. */
function changed(steps: Step[], call: number, { below, next }: ReturnType<typeof random>): void {
  const at = below(steps.length)
  const step = steps[at] as Step
  const kind = next()
  if (kind < 0.3) steps[0] = { user: `begin, it is ${call}` }
  else if (kind < 0.4) steps.splice(at, 0, { user: next() < 0.5 ? 'continue' : `put in ${call}` })
  else if (kind < 0.5 && steps.length > 6) steps.splice(1 + below(steps.length - 3), 1 + below(2))
  else if (kind < 0.6 && 'user' in step) steps[at] = { user: next() < 0.3 ? 'continue' : `changed ${call}` }
  else if (kind < 0.8 && 'calls' in step && step.calls[0] !== undefined) {
    const [first, ...others] = step.calls
    const other = kind < 0.7 ? { ...first, output: `edited ${call}` } : { ...first, args: { command: `other ${call}` }, ...(kind > 0.75 && { name: 'grep' }) }
    steps[at] = { ...step, calls: [other, ...others] }
  }
}

test.each(SHAPES.flatMap((name) => [1, 2, 3].map((seed): [ShapeName, number] => [name, seed])))(
  '%s, seed %i: the same is sent as where all messages are read again',
  async (name, seed) => {
    const cwd = folder()
    const shape = shapeNamed(name)
    const { isAlone: _alone, ...reading } = shape
    const [one, other] = [await projection(shape, cwd), await projection(reading, cwd)]
    const dice = random(seed)
    const steps: Step[] = [{ user: 'begin' }]
    for (let call = 0; call < 30; call += 1) {
      const id = dice.next() < 0.1 ? `c${dice.below(call + 1)}` : `c${call}`
      const said = dice.next() < 0.2 ? 'same' : output(call, 5 + dice.below(40))
      steps.push({ calls: [{ id, name: 'bash', args: { command: dice.next() < 0.2 ? 'same' : `run ${call}` }, output: said }] })
      if (dice.next() < 0.2) steps.push({ text: 'done', calls: [] }, { user: dice.next() < 0.5 ? 'continue' : `next ${call}` })
      changed(steps, call, dice)
      const messages = steps.flatMap((step) => written[name](step, 1))
      expect(await one.transform(messages)).toEqual(await other.transform(messages))
    }
  },
)
