/**
 * Counts turns of phrase that make our English hard to read, by folder. `node scripts/prose.mjs` fails where a folder has more
 * of them than scripts/prose.json allows; `--save` lowers what is allowed to what there is,
 * and never raises it; `--list FOLDER` prints them all.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Each with what to write instead. */
const PATTERNS = [
  [/\b(?:nobody|somebody|whoever)\b/gi, 'name the actor, or use the passive'],
  [/(?:^|[.*/#] +)(?:Of|To) (?:what|whom|which|those|a|the|all)\b/gm, 'put the subject first'],
  [/(?:\/\*\*|\/\/\/|\/\/) (?:What|How|Which|Where|Whether)\b/g, 'begin with a noun'],
  [/\b(?:goes on|go on|stands (?:for|behind|there)|comes (?:back|to|by)|so many)\b/g, 'continues, precedes, is, that many'],
  [/(?<!\b[Tt]here\s+)\bis no\b(?! longer| more)|\bof its own\b|\btoo[.,]?$|\ball the same\b/gm, 'is not a; its own; also; anyway'],
  [/\btest\b[^\n]*\]\s+(?:async )?fn (?:what|of|which|who)_|\btest\('(?:what|of|which|who) /g, 'name a test by its subject and outcome'],
  [/\bReturns whether\b/g, 'True if'],
]

const root = fileURLToPath(new URL('..', import.meta.url))
const saved = new URL('prose.json', import.meta.url)

/** Text that people wrote here: no fixtures, no generated reports, and not this file. */
function isOurs(path) {
  return /\.(?:rs|ts|mjs|md)$/.test(path) && !/^(?:fixtures|docs\/(?:api|harm|experiments))\/|^scripts\/prose\.mjs$|^index\.d\.ts$/.test(path)
}

/** The part of the project that a file belongs to: `crates/engine`, `lib/gateway`, `docs`. */
function folderOf(path) {
  const [first, second] = path.split('/')
  if (second === undefined) return '.'
  return ['crates', 'lib', 'lab', '__test__'].includes(first) && path.split('/').length > 2 ? `${first}/${second}` : first
}

function findings() {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(isOurs)
  return files.flatMap((path) => {
    let text
    try {
      text = readFileSync(new URL(path, new URL('..', import.meta.url)), 'utf8')
    } catch {
      return [] // Removed, and not committed yet.
    }
    return PATTERNS.flatMap(([pattern, advice]) =>
      [...text.matchAll(pattern)].map(({ index, 0: words }) => {
        const line = text.slice(0, index).split('\n').length
        return { folder: folderOf(path), place: `${path}:${line}`, words: words.trim(), advice }
      }),
    )
  })
}

const all = findings()
const counts = {}
for (const { folder } of all) counts[folder] = (counts[folder] ?? 0) + 1
const allowed = JSON.parse(readFileSync(saved, 'utf8'))
const [option, name] = process.argv.slice(2)
if (option === '--list') {
  const chosen = all.filter(({ folder }) => name === undefined || folder === name)
  for (const { place, words, advice } of chosen) console.log(`${place}: "${words}" (${advice})`)
} else {
  const worse = Object.keys(counts).filter((folder) => counts[folder] > (allowed[folder] ?? 0))
  if (option === '--save') {
    const lower = Object.keys(counts)
      .sort()
      .map((folder) => [folder, Math.min(counts[folder], allowed[folder] ?? counts[folder])])
    writeFileSync(saved, `${JSON.stringify(Object.fromEntries(lower), null, 2)}\n`)
  }
  for (const folder of option === '--save' ? [] : worse) {
    console.error(`${folder} has ${counts[folder]} phrases to avoid, and ${allowed[folder] ?? 0} are allowed: node scripts/prose.mjs --list ${folder}`)
  }
  console.log(`${all.length} phrases to avoid`)
  process.exitCode = worse.length > 0 && option !== '--save' ? 1 : 0
}
