/**
 * Measures settings of the context manager against each other: what they cost, and what they hide.
 *
 *   node lab/front.mjs [--sessions] [--svg FILE] [--json FILE] [--half even|odd] [--ways NAME,...] FOLDER... [-- NAME=JSON...]
 *
 * Each setting is a name and, as JSON, options of `ContextManager.open` beside the product's own:
 *
 *   node lab/front.mjs ../shared/sessions -- 'today={}' 'narrow={"window":{"perTurn":3,"turnsBack":2}}'
 *
 * `binding` (what the provider does with reasoning behind a change) and `prices` (`{"read":0.05,"write":1.25}`, in fresh input
 * tokens, instead of each model's own) are no options of `open`, but of the model:
 *
 *   node lab/front.mjs ../shared/sessions -- 'bound={"binding":"refuses","prices":{"read":0.05,"write":1.25}}'
 *
 * Every session is replayed with the real engine. Costs are over those of Pi: with Pi's system part of 3,000 tokens, with
 * the recorded one, and with 3,000 tokens and Anthropic's breakpoints; `--ways hour,openai` has its caches of an hour and
 * OpenAI's in their place. Missed uses are those of the first; per 100 calls.
 * Needs the build.
 */
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { CACHES } from '../dist/replay/cache.js'
import { OwnPhrases } from '../dist/replay/missed/phrases.js'
import { addUses, noUses } from '../dist/replay/missed/uses.js'
import { openRecording, sessionFiles } from '../dist/recordings/open.js'
import { ratioPrices } from '../dist/recordings/prices.js'
import { replaySession } from '../dist/replay/run.js'
import { survey } from '../dist/replay/survey.js'
import { drawFront } from './front-picture.mjs'

/** Tokens of Pi's own system prompt and tools. */
const SMALL_SYSTEM = 3000

const WAYS = [
  { name: 'small', cache: 'plain', systemTokens: SMALL_SYSTEM },
  { name: 'recorded', cache: 'plain' },
  { name: 'anthropic', cache: 'anthropic', systemTokens: SMALL_SYSTEM },
  { name: 'hour', cache: 'anthropic-1h', systemTokens: SMALL_SYSTEM },
  { name: 'openai', cache: 'openai', systemTokens: SMALL_SYSTEM },
]

/** Those that are measured if none are asked for. */
const USUAL_WAYS = 'small,recorded,anthropic'

/** Policies that the settings are held against. */
const PEERS = ['pi', 'clear']

const { values, folders, settings } = argumentsOf(process.argv.slice(2))
const ways = WAYS.filter(({ name }) => name === 'small' || (values.ways ?? USUAL_WAYS).split(',').includes(name))
const recordings = await openAll(folders)
const phrases = new OwnPhrases()
for (const recording of recordings) await phrases.learn(recording)
const sessions = []
for (const [index, recording] of recordings.entries()) {
  if (values.half !== undefined && index % 2 !== (values.half === 'even' ? 0 : 1)) continue
  const found = await survey(recording, () => {})
  if (found.calls > 0) sessions.push({ recording, found, recorded: found.systemTokens, pi: {} })
}
const calls = sessions.reduce((sum, { found }) => sum + found.calls, 0)
console.log(`${sessions.length} sessions, ${calls} model calls; missed uses per 100 calls\n`)

const rows = []
for (const policy of PEERS) rows.push(await measure(policy, policy, {}))
for (const { name, open } of settings) rows.push(await measure(name, 'pi-context-manager', open))
console.log(`\n${table(rows)}`)
if (values.svg !== undefined) writeFileSync(values.svg, drawFront(rows))
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ calls, rows }, null, 1)}\n`)

function argumentsOf(args) {
  const cut = args.indexOf('--')
  const { values: given, positionals } = parseArgs({
    args: cut < 0 ? args : args.slice(0, cut),
    allowPositionals: true,
    options: {
      sessions: { type: 'boolean' },
      svg: { type: 'string' },
      json: { type: 'string' },
      half: { type: 'string' },
      ways: { type: 'string' },
    },
  })
  if (positionals.length === 0) {
    console.error('usage: node lab/front.mjs [--sessions] [--svg FILE] [--half even|odd] FOLDER... [-- NAME=JSON...]')
    process.exit(2)
  }
  const named = (cut < 0 ? ['product={}'] : args.slice(cut + 1)).map((text) => {
    const at = text.indexOf('={')
    return { name: text.slice(0, at), open: JSON.parse(text.slice(at + 1)) }
  })
  return { values: given, folders: positionals, settings: named }
}

async function openAll(paths) {
  const found = []
  for (const path of paths) {
    for await (const file of sessionFiles(path)) {
      try {
        found.push(await openRecording(file))
      } catch (error) {
        console.error(`${file}: ${error.message}`)
      }
    }
  }
  return found
}

/** One policy or setting over all sessions. */
async function measure(name, policy, { binding, prices, ...open }) {
  const ratios = prices && ratioPrices(prices.read, prices.write)
  const row = { name, uses: noUses(), calls, peak: 0, rolls: 0, lost: 0, lostRunning: 0, rereads: 0, fetched: 0, worst: 0, ratios: {}, bySession: [] }
  const started = Date.now()
  for (const way of ways) {
    let cost = 0
    let pi = 0
    let fetch = 0
    for (const session of sessions) {
      const { recording, found } = session
      found.systemTokens = way.systemTokens ?? session.recorded
      const report = await replaySession(recording, found, {
        policies: prices === undefined ? [policy] : ['pi', policy],
        cache: CACHES[way.cache],
        window: 200_000,
        phrases,
        onlyCosts: way.name !== 'small',
        ...(ratios && { prices: ratios }),
        manager: { perTurn: 5, turnsBack: 3, onlyAtUserTurn: false, overheadTokens: 600, open, ...(binding && { binding }) },
      })
      const own = report.policies[policy]
      if (policy === 'pi') session.pi[way.name] = own.cost
      cost += own.cost
      const base = report.policies.pi?.cost ?? session.pi[way.name]
      pi += base
      fetch += own.fetchCost
      if (way.name !== 'small') continue
      const ratio = own.cost / base
      addUses(row.uses, own.missedUses)
      row.peak += own.peakTokens / sessions.length
      row.rolls += own.rolls
      row.lost += own.reasoningLost
      row.lostRunning += own.reasoningLostRunning
      row.rereads += own.rereads
      row.worst = Math.max(row.worst, ratio)
      row.bySession.push({
        file: basename(recording.file),
        calls: found.calls,
        cost: ratio,
        peak: own.peakTokens,
        missed: own.missed,
        missedStrong: own.missedStrong,
        missedHarm: own.missedHarm,
      })
    }
    row.ratios[way.name] = cost / pi
    if (way.name === 'small') row.fetched = (cost + fetch) / pi
  }
  console.error(`${name}: ${((Date.now() - started) / 1000).toFixed(0)} s`)
  if (values.sessions && policy === 'pi-context-manager') {
    for (const one of row.bySession) {
      console.log(
        `  ${name}  ${one.file.padEnd(34)} ${String(one.calls).padStart(4)} calls  cost ${one.cost.toFixed(2)}  peak ${Math.round(one.peak / 1000)}k  missed ${one.missed.toFixed(1)} (${one.missedStrong.toFixed(1)})`,
      )
    }
  }
  return row
}

function table(all) {
  const others = ways.filter(({ name }) => name === 'hour' || name === 'openai')
  const heads = [
    'setting',
    'cost / Pi',
    'recorded system part',
    'Anthropic',
    ...others.map(({ name }) => name),
    'dearest session',
    'mean peak',
    'rolls',
    'reasoning lost (running turn)',
    're-reads',
    'tool text (strong; probable harm)',
    'own words (strong)',
    'at once (strong)',
    'strong ones fetched',
  ]
  const lines = all.map((row) => {
    const rate = (count) => ((100 * count) / row.calls).toFixed(1)
    const pair = ({ all: every, strong }) => `${rate(every)} (${rate(strong)})`
    const { small, recorded, anthropic } = row.ratios
    return [
      row.name,
      ...[small, recorded, anthropic, ...others.map(({ name }) => row.ratios[name]), row.worst].map((value) => value?.toFixed(3) ?? '-'),
      `${Math.round(row.peak / 1000)}k`,
      rate(row.rolls),
      `${row.lost} (${row.lostRunning})`,
      rate(row.rereads),
      `${rate(row.uses.toolText.all)} (${rate(row.uses.toolText.strong)}; ${rate(row.uses.probableHarm)})`,
      pair(row.uses.ownWords),
      pair(row.uses.atOnce),
      row.fetched.toFixed(3),
    ]
  })
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map((_, index) => (index === 0 ? '---' : '--:'))), ...lines.map(line)].join('\n')
}
