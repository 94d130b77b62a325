/**
 * The replay's gate: no figure may be worse than its baseline, neither what a session costs nor what is hidden from the
 * model. Replays the sessions in fixtures/sessions and, where they are present, the larger ones directly in
 * ../shared/sessions, which are not part of this repository. Needs the build.
 * With `--save` it writes the baselines instead, and the figures in README.md that come from them.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url))
const save = process.argv.includes('--save')

const sets = [
  { sessions: path('fixtures/sessions'), baseline: path('fixtures/replay-baseline.json') },
  { sessions: path('../shared/sessions'), baseline: path('fixtures/replay-baseline-large.json') },
]

for (const { sessions, baseline } of sets) {
  if (!existsSync(sessions)) continue
  const gate = save ? ['--save-baseline', baseline] : ['--check', baseline]
  const names = readdirSync(sessions).filter((name) => name.endsWith('.jsonl'))
  const files = names.sort().map((name) => join(sessions, name))
  const args = [path('dist/cli/main.js'), 'replay', ...files, '--policies', 'recorded,pi,pi-context-manager,chosen-lifetime', '--quiet', ...gate]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exitCode = status ?? 1
}

if (save) await import('../scripts/readme-figures.mjs')
