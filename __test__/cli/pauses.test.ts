/** The gateway's setting of the garbage collector. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { NODE } from '../replay/support.ts'

test('node knows the setting for short pauses', () => {
  const [node, ...options] = NODE as [string, ...string[]]
  const code = "import { shortenPauses } from './lib/cli/pauses.ts'; shortenPauses()"
  // Node names a setting that it does not know, and continues.
  const { status, stdout, stderr } = spawnSync(node, [...options, '--input-type=module', '-e', code], { encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})
