/**
 * Draws the pictures of the README from real runs: `node scripts/pictures.mjs [--screens FOLDER] [--report FOLDER]`.
 *
 * Pi runs in a terminal of tmux, on the demo's scripted model, with the context manager; its screen becomes
 * docs/pictures/context.svg. `--screens` also writes the screen as text at 60, 100 and 180 columns. `--report` replays the
 * sessions in a folder instead and photographs the page as docs/pictures/report.png; the variable CHROMIUM names the
 * browser. Needs the build, and tmux or a browser with puppeteer-core (`npm install --no-save puppeteer-core`, or its path
 * in PUPPETEER).
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from '../pi-runtime/index.mjs'

const main = fileURLToPath(new URL('pictures/main.ts', import.meta.url))
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
const child = spawn(findNode(), [...flags, main, ...process.argv.slice(2)], { stdio: 'inherit' })
child.on('exit', (code) => process.exit(code ?? 1))
