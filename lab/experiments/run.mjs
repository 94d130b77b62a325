/** Finds a Node that Pi runs on, and runs the experiment with it. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from '../../pi-runtime/index.mjs'

const main = fileURLToPath(new URL('main.ts', import.meta.url))
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
process.exitCode = spawnSync(findNode(), [...flags, main, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1
