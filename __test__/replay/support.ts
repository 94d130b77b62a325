/** Shared by the tests of replay. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CACHES } from '../../lib/replay/cache.ts'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { openRecording } from '../../lib/recordings/open.ts'
import { POLICY_NAMES } from '../../lib/replay/policies/policy.ts'
import type { PolicyMoment, Setting } from '../../lib/replay/policies/policy.ts'
import { ratioPrices } from '../../lib/recordings/prices.ts'
import type { RecordedEntry, Problem, Step } from '../../lib/recordings/recording.ts'
import type { ReplayOptions } from '../../lib/replay/run.ts'
import { findNode } from '../../pi-runtime/index.mjs'
import { onCleanUp } from '../../rig/cleanup.ts'

/** Node with what it takes to run sources. */
export const NODE: readonly string[] = [findNode(), '--experimental-strip-types', '--disable-warning=ExperimentalWarning']

/** The program, to be run from its sources by {@link NODE}. */
export const MAIN = fileURLToPath(new URL('../../lib/cli/main.ts', import.meta.url))

/** A command that runs the program. */
export function program(...args: readonly string[]): [file: string, args: string[]] {
  const [file = '', ...flags] = NODE
  return [file, [...flags, MAIN, ...args]]
}

/** A program's exit code and output. */
interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs the program itself. */
export function cli(args: string[], env: Record<string, string> = {}, output: 'pipe' | number = 'pipe'): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(...program(...args), { env: { ...process.env, ...env }, stdio: ['pipe', output, 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** For a process whose clock stands still: the program without a command then reads everything, however slow the machine is. */
export const UNHURRIED = { NODE_OPTIONS: '--import=data:text/javascript,performance.now=()=>0' }

/** A recorded session of this repository. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/sessions/${name}`, import.meta.url))
}

/** A file with these lines in a folder that goes when the test ends. */
export function temporaryFile(name: string, text: string): string {
  const folder = temporaryFolder()
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** A folder that goes when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-'))
  onCleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** All steps of a file, and what was reported on the way. */
export async function stepsOf(file: string): Promise<{ steps: Step[]; problems: Problem[] }> {
  const problems: Problem[] = []
  const steps: Step[] = []
  const recording = await openRecording(file)
  for await (const step of recording.steps((problem) => problems.push(problem))) steps.push(step)
  return { steps, problems }
}

/** The messages among steps. */
export function entriesOf(steps: readonly Step[]): RecordedEntry[] {
  return steps.flatMap((step) => (step.kind === 'message' ? [step.entry] : []))
}

/** The options with which the tests replay by default. */
export function options(changes: Partial<ReplayOptions> = {}): ReplayOptions {
  return {
    policies: POLICY_NAMES,
    cache: CACHES.plain,
    window: 200_000,
    manager: { perTurn: 5, turnsBack: 3, onlyAtUserTurn: false, overheadTokens: 600 },
    ...changes,
  }
}

/** A block of this many characters whose bytes are those characters. */
export function block(name: string, units: number): ReplayBlock {
  return { bytes: name.repeat(Math.ceil(units / name.length)).slice(0, units), units, label: 'answer', texts: [] }
}

/** A call of a model with prices by ratio. */
export const MOMENT: PolicyMoment = { at: 0, model: 'm', prices: ratioPrices(0.1, 1.25) }

/** The settings of a policy's whole session. */
export function setting(changes: Partial<Setting> = {}): Setting {
  const { cache, window, manager } = options()
  return { sessionId: 's', cwd: '/', unitsPerToken: 4, systemTokens: 1000, window, cache, summaries: [], manager, ...changes }
}
