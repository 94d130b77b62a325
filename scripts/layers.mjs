/**
 * Checks which parts of the engine import which: `session` only itself, `files` also `session`; the rest imports both. Between crates
 * the compiler holds such an order, within one it does not.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../crates/engine/src', import.meta.url))
const LAYERS = { session: ['session'], files: ['files', 'session'] }

const wrong = Object.entries(LAYERS).flatMap(([folder, allowed]) =>
  readdirSync(join(source, folder)).flatMap((name) =>
    [...readFileSync(join(source, folder, name), 'utf8').matchAll(/\bcrate::(\w+)/g)]
      .filter(([, part]) => !allowed.includes(part))
      .map(([path]) => `crates/engine/src/${folder}/${name}: ${path}`),
  ),
)
if (wrong.length > 0) {
  console.error(`these parts of the engine import what is above them:\n${wrong.join('\n')}`)
  process.exitCode = 1
}
