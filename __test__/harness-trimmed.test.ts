/** A host may take the blanks from the ends of all answers, as some do when they resume: it is the same conversation. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { folder, opened, sqlite } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 400_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

const output = (call: number): string => Array.from({ length: 60 }, (_, line) => `output ${call} line ${line} of what a tool has said`).join('\n')

const STEPS: readonly Step[] = Array.from({ length: 5 }, (_, turn): Step[] => [
  { user: `prompt ${turn}` },
  ...Array.from({ length: 8 }, (_, n): Step => ({
    text: `I look at ${n} `,
    calls: [{ id: `c${turn}_${n}`, name: 'bash', args: { command: `run ${n}` }, output: output(turn * 8 + n) }],
  })),
  { text: 'done\n', calls: [] },
]).flat()

const trimmed = (step: Step): Step => ('user' in step ? step : { ...step, text: step.text?.trim() ?? '' })

test.each(shapes.flatMap((shape) => [false, true].map((isAnew) => [shape, isAnew] as const)))(
  '%s: what has collapsed stays so (in a new process: %s)',
  async (shape, isAnew) => {
    const [cwd, store] = [folder(), sqlite()]
    const open = () => opened({ cwd, store, shape, model: MODEL })
    const all = (steps: readonly Step[]): object[] => steps.flatMap((step) => written[shape](step, 1))
    let manager = await open()
    let sent: object[] = []
    for (let count = 1; count <= STEPS.length; count += 1) sent = await manager.transformContext(all(STEPS.slice(0, count)))
    const before = JSON.stringify(sent).length
    expect(before).toBeLessThan(0.6 * JSON.stringify(all(STEPS)).length)
    if (isAnew) {
      await manager.close()
      manager = await open()
    }
    const after = JSON.stringify(await manager.transformContext(all([...STEPS.map(trimmed), { user: 'and now' }]))).length
    expect(after).toBeLessThan(1.05 * before)
  },
)
