/** Records the sessions in fixtures/sessions anew: finds a Node that Pi runs on, and runs the recorder with it. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from '../pi-runtime/index.mjs'

const main = fileURLToPath(new URL('../__test__/replay/record/main.ts', import.meta.url))
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
process.exitCode = spawnSync(findNode(), [...flags, main], { stdio: 'inherit' }).status ?? 1
