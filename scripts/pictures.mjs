/**
 * Draws the pictures of the README from real runs: `node scripts/pictures.mjs [--screens FOLDER] [--report FOLDER]`.
 *
 * Pi runs in a terminal of tmux, on the demo's scripted model, with the context manager; its screen becomes
 * docs/pictures/context.svg. `--screens` also writes the screen as text, at 60, 100 and 180 columns and at 16 to 50 rows.
 * `--report` instead replays the sessions in a folder and takes a screenshot of the page, docs/pictures/report.png. Needs the
 * build, and tmux or Chromium (its path in CHROMIUM, default `chromium`).
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from '../pi-runtime/index.mjs'

const main = fileURLToPath(new URL('pictures/main.ts', import.meta.url))
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
const child = spawn(findNode(), [...flags, main, ...process.argv.slice(2)], { stdio: 'inherit' })
child.on('exit', (code) => process.exit(code ?? 1))
