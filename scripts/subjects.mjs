/**
 * Checks the subjects of commits: `node scripts/subjects.mjs [RANGE]` (default: the newest commit), or as a hook for commit-msg
 * with the message's file as `--file FILE`. A subject names the part, says what changed, and has at most 72 characters.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const MOST = 72
const [option = '-1', file = ''] = process.argv.slice(2)
const subjects =
  option === '--file'
    ? [readFileSync(file, 'utf8').split('\n')[0] ?? '']
    : execFileSync('git', ['log', '--no-merges', '--format=%s', option], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line !== '')

const problems = subjects.flatMap((subject) => {
  if ([...subject].length > MOST) return [`"${subject}" has ${[...subject].length} characters; at most ${MOST} are shown everywhere`]
  if (!/^[\w./, -]+: \S/.test(subject)) return [`"${subject}" does not name the part first, as in "engine: announce deleted folders"`]
  return subject.endsWith('.') ? [`"${subject}" ends with a full stop`] : []
})
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
