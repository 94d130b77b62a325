/**
 * Writes the figures of docs/economics.md: `node lab/economics.mjs FOLDER` replays the sessions in FOLDER under all
 * policies, price models and cache rules, and replaces what stands between the markers. Needs the build; takes minutes.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

const BEGIN = '<!-- figures: written by lab/economics.mjs -->'
const END = '<!-- end of figures -->'
const PRICES = [
  [0.1, 1.25],
  [0.1, 1],
  [0.05, 1.25],
]
const CACHES = ['plain', 'anthropic']
const POLICIES = ['append', 'pi', 'mask', 'clear', 'sections', 'pi-context-manager', 'bound']

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const page = fileURLToPath(new URL('../docs/economics.md', import.meta.url))

const folder = process.argv[2]
if (folder === undefined) {
  console.error('usage: node lab/economics.mjs FOLDER')
  process.exit(2)
}

const runs = new Map()
for (const cache of CACHES) {
  for (const [read, write] of PRICES) {
    console.error(`${cache}, r ${read}, w ${write}`)
    runs.set(`${cache} ${read} ${write}`, replay(folder, '--cache', cache, '--read', read, '--write', write))
  }
}
const own = runs.get('plain 0.1 1.25')
const text = [summary(), costs(), sessions(), smallSystem()].filter((part) => part !== '').join('\n\n')
const old = readFileSync(page, 'utf8')
const [from, to] = [old.indexOf(BEGIN), old.indexOf(END)]
if (from < 0 || to < 0) throw new Error('docs/economics.md has lost its markers')
writeFileSync(page, `${old.slice(0, from + BEGIN.length)}\n\n${text}\n\n${old.slice(to)}`)

function replay(path, ...options) {
  const policies = options.includes('--policies') ? [] : ['--policies', 'all']
  const args = [program, 'replay', path, '--json', ...policies, ...options.map(String)]
  return JSON.parse(
    execFileSync(process.execPath, args, {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
}

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map((_, index) => (index === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n')
}

function summary() {
  const { sessions: count, calls, policies } = own.summary
  const rows = POLICIES.map((name) => {
    const one = policies[name]
    const marked = name === 'pi-context-manager' ? `**${name}**` : name
    return [
      marked,
      ratio(one.costVsPi),
      one.cacheHit.toFixed(3),
      tokens(one.tokensSent),
      tokens(one.peakTokens),
      one.compactions,
      one.rolls,
      one.rereads,
      one.answeredReads,
    ]
  })
  const heads = ['policy', 'cost / Pi', 'cache hit', 'sent', 'peak', 'compactions', 'rolls', 're-reads', 'reads answered']
  return `### ${count} recorded sessions, ${calls} model calls\n\nWeighted by cost, plain prefix cache, \`r\` 0.10, \`w\` 1.25:\n\n${table(heads, rows)}`
}

function costs() {
  const heads = ['cost / Pi', ...CACHES.flatMap((cache) => PRICES.map(([r, w]) => `${cache} r ${r.toFixed(2)} w ${w.toFixed(2)}`))]
  const rows = POLICIES.map((name) => [
    name === 'pi-context-manager' ? `**${name}**` : name,
    ...CACHES.flatMap((cache) => PRICES.map(([r, w]) => ratio(runs.get(`${cache} ${r} ${w}`).summary.policies[name].costVsPi))),
  ])
  return `### Three price models, two caches\n\n\`plain\` reuses any common prefix; \`anthropic\` is Anthropic's API with the breakpoints that Pi sets, where a change deeper than 20 positions (a run of calls, or of results, is one) re-bills everything after the system part.\n\n${table(heads, rows)}`
}

function sessions() {
  const other = new Map(runs.get('anthropic 0.1 1.25').sessions.map((one) => [one.file, one]))
  const rows = own.sessions.map((one) => {
    const { 'pi-context-manager': own, bound, pi: host } = one.policies
    const marked = other.get(one.file).policies['pi-context-manager']
    return [
      basename(one.file),
      one.calls,
      one.charsPerToken.toFixed(2),
      tokens(one.systemTokens),
      ratio(own.costVsPi),
      own.cacheHit.toFixed(3),
      `${tokens(own.peakTokens)} / ${tokens(host.peakTokens)}`,
      ratio(bound.costVsPi),
      ratio(marked.costVsPi),
    ]
  })
  const heads = ['session', 'calls', 'characters a token', 'system part', 'cost / Pi', 'cache hit', 'peak / of Pi', 'bound', 'cost / Pi, anthropic']
  return `### Each session (\`pi-context-manager\`)\n\n${table(heads, rows)}`
}

function smallSystem() {
  if (own.sessions.every((one) => one.format === 'pi')) return ''
  const { policies } = replay(folder, '--policies', 'pi,pi-context-manager,bound', '--read', 0.1, '--write', 1.25, '--system-tokens', 3000).summary
  return `Claude Code's system part is about ten times that of Pi, and no policy can make it smaller. With Pi's 3,000 tokens for all sessions \`pi-context-manager\` costs **${ratio(policies['pi-context-manager'].costVsPi)}** of Pi, and the bound is ${ratio(policies.bound.costVsPi)}.`
}

function ratio(value) {
  return value.toFixed(2)
}

function tokens(count) {
  if (count >= 999_500) return `${Math.round(count / 1_000_000)}M`
  return count >= 1000 ? `${count < 9950 ? (count / 1000).toFixed(1) : Math.round(count / 1000)}k` : String(Math.round(count))
}
