import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/**
 * Suites that start real programs again and again, or work for long. `npm run test:full` runs them, so that `npm test` ends in
 * minutes; CI runs one in {@link TURNS}, others at each commit; a suite that is named on the command line also runs. After each:
 * the part of it that `npm test` covers anyway.
 */
const SLOW = [
  'cli/all-agents', // cli/around, replay/formats
  'cli/bills', // gateway/bills
  'cli/interrupted', // cli/around
  'cli/names', // cli: the same commands
  'cli/one-name', // cli
  'cli/one-number', // gateway/bills, cli
  'cli/opencode-store', // replay/formats: the same reader
  'cli/outcome', // pi/life, cli
  'cli/sentences', // docs/errors.md by errors, cli
  'cli/usage', // cli
  'demo', // the other command of the README
  'gateway/going-back', // gateway/plain-cache: its rules
  'gateway/forms', // gateway/wire, gateway/conversations
  'gateway/killed', // gateway/conversations, lasting/kill: a process that is killed
  'gateway/plain', // gateway/bills: the same sums
  'harness-back', // harness-truth, engine/stepped
  'harness-forms', // harness-shapes, engine/forms
  'harness-resolves', // random/editor, and gateway/resolves
  'hosts/binding', // harness-binding: the same answers without a framework
  'hosts/cost', // replay/managed
  'hosts/crash', // lasting/kill
  'hosts/opencode', // hosts/conformance
  'hosts/opencode-binding', // harness-binding
  'hosts/packed', // addon
  'look', // cli, inspect
  'owner', // lasting/kill, and the store's own tests of owners
  'pi/bill', // replay, pi/cache
  'pi/binding', // harness-binding
  'pi/compaction', // engine/compacted
  'pi/continued', // pi/life, engine/resume
  'pi/failures', // pi/failed-pass
  'pi/first-start', // pi/life
  'pi/leaving', // pi/undo, engine/stepped
  'pi/panel', // terminal, pi/why
  'pi/queue', // the store's own tests of its journal
  'pi/random', // pi/life, and the simulation of the engine
  'pi/resume', // pi/life, engine/resume
  'pi/sections', // pi/life
  'pi/small', // pi/life
  'pi/tools', // pi/arguments, pi/choices
  'pi/undo', // engine/stepped, harness-truth
  'pi/wire', // pi/transcript, gateway/wire
  'release', // hosts/packed
  'replay/chosen', // replay/policies, gateway/lifetime
  'replay/cli', // the suites of replay below the command line
  'replay/experiment', // replay/policies
  'replay/identical', // replay/managed
  'replay/record', // replay/verdict
  'replay/store', // the store's own tests of damaged files
  'secrets', // the tests of the crate
  'session-names', // cli
  'unreachable', // the store's own tests of its journal
  'values', // golden, the conformance suite of the stores
]
/** The number of commits after which each of these suites has run in CI. */
const TURNS = 8
const turn = process.env['CI'] === undefined ? undefined : Number(process.env['CONTEXT_ROWS'] ?? '0') % TURNS
const isNamed = process.argv.some((word) => word.startsWith('__test__/'))
const isFull = process.env['CONTEXT_FULL'] === '1' || isNamed

/** The suites that last longest in CI. They start first, so that none of them runs alone at the end. */
const LONGEST = ['random/editor', 'hosts/opencode', 'pi/binding', 'hosts/opencode-binding', 'pi/panel', 'harness-resolves', 'pi/bill', 'pi/life', 'owner']

/** The longest suites first, the others as usual: by what they took here before, or by size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/__test__/${name}.test.ts`))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).toSorted((left, right) => place(left) - place(right))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    include: ['__test__/**/*.test.ts'],
    // A suite that is named runs all rows of its tables (__test__/rows.ts).
    env: isNamed ? { CONTEXT_NAMED: '1' } : {},
    exclude: isFull ? [] : SLOW.filter((_, at) => at % TURNS !== turn).map((name) => `__test__/${name}.test.ts`),
    // Most tests start a real Pi, several times; on a busy machine that takes its time, and a lost event must
    // fail with what Pi said (the rig's own deadline of 60 s), not with the runner's bare timeout.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
