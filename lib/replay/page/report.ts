/** The report for people: one self-contained page, written piece by piece. */
import { basename } from 'node:path'
import { accountText, bars, compared, counted, dayOf, difference, escape, lineChart, prose, STYLE, timeline, tokens, toolClass } from '../../ui/index.ts'
import type { JsonReport } from '../json.ts'
import { measuresOf } from '../measures.ts'
import type { Measured } from '../measures.ts'
import { POLICY_NAMES } from '../policies/policy.ts'
import type { PolicyName } from '../policies/policy.ts'
import { programTitle } from '../../recordings/index.ts'
import type { Problem } from '../../recordings/index.ts'
import type { SessionReport } from '../run.ts'
import type { Summary } from '../summary.ts'
import { comparedBy, leadingOf, money, unitOf, verdictOf } from '../verdict.ts'
import { isOnPlan } from '../plan-calls.ts'
import { leftOutLines, regimeText, sideNote } from '../notes.ts'
import { rowOf } from '../table.ts'
import { missedUses } from './missed.ts'

/** Rows of a timeline; the largest items are shown. */
const MAX_SPANS = 120

/** Descriptions of the policies, in a line each. */
const MEANING: Readonly<Record<PolicyName, string>> = {
  recorded: 'the requests as they were sent, with the recorded program’s own summaries and clearings',
  append: 'nothing is ever removed',
  pi: 'plain Pi: nothing is removed until a summary replaces old messages when the window is full',
  mask: 'only the last ten tool results are shown',
  clear: 'above 100k tokens, only the last three tool results are kept',
  sections: 'four sections, each written anew for each call',
  'pi-context-manager': 'this context manager',
  'chosen-lifetime': 'the same, which also chooses how long the provider keeps what it caches',
  bound: 'the lowest cost any policy can reach: each token written once, only prose read again',
}

/** Writes the page; holds one session at a time. Sessions come before the summary; the style orders them. */
export class PageWriter {
  readonly #write: (text: string) => void
  readonly #single: boolean

  /** `about` says what the figures were measured with; `files` is the number of files to come. */
  constructor(write: (text: string) => void, about: string, files: number) {
    this.#write = write
    this.#single = files === 1
    write(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Replay</title><style>${STYLE}main{display:flex;flex-direction:column}.all{order:-2000000002}.session{order:0}.about{order:2000000001}</style></head><body><main>\n<p class="dim about">${escape(about)}.</p>\n`,
    )
  }

  /** The next session. */
  add(report: SessionReport): void {
    this.#write(session(report, this.#single))
  }

  /** The sums over all sessions, and what could not be read. */
  end(summary: Summary, problems: readonly Problem[], leftOut: JsonReport['leftOut']): void {
    const left = leftOutLines(leftOut, summary)
      .map((line) => `<li>${escape(line)}</li>`)
      .join('')
    const list = problems.map((one) => `<li>${escape(problemLine(one))}</li>`).join('')
    const problem = list === '' ? '' : `<h3>Not everything could be read</h3><ul>${list}</ul>`
    this.#write(
      `<section class="all">${overview(summary, this.#single)}${problem}${left === '' ? '' : `<h3>Left out</h3><ul>${left}</ul>`}</section>\n</main></body></html>\n`,
    )
  }
}

/** A problem as a line for people. */
export function problemLine({ file, line, message }: Problem): string {
  return line === undefined ? `${file}: ${message}` : `${file}, line ${line}: ${message}`
}

function overview(summary: Summary, single: boolean): string {
  const { unit, policies } = summary
  const own = policies['pi-context-manager']
  const before = policies.recorded ?? policies.pi
  const verdict = verdictOf(summary)
  const head =
    verdict === undefined
      ? '<h1>What your sessions would have cost</h1>'
      : `<h1>${prose(verdict.headline)}</h1><p>${prose(verdict.cost)}</p>${[verdict.losses, verdict.window].map((sentence) => (sentence === undefined ? '' : `<p>${prose(sentence)}</p>`)).join('')}<p>${prose(verdict.fetch)}</p>`
  const tiles: [string, string][] = []
  if (own !== undefined && before !== undefined) {
    const leading = leadingOf(summary.accounts ?? [])
    const { paid, without } = comparedBy(leading)
    const shown = unitOf(leading, unit)
    if (without > 0)
      tiles.push([
        money(Math.abs(without - paid), shown),
        `${without < paid ? (shown === 'tokens' ? 'more to send' : 'more to pay') : shown === 'tokens' ? 'tokens saved' : 'saved'}: ${compared(paid / without)} without pi-context-manager`,
      ])
    tiles.push([`${(100 * own.cacheHit).toFixed(1)} %`, 'of all prompt tokens came from the cache'])
    tiles.push([tokens(own.peakTokens), `tokens in the largest request; without: ${tokens(before.peakTokens)}`])
    tiles.push([String(own.compactions), `lossy summaries; without: ${before.compactions}`])
    tiles.push([own.missedStrong.toFixed(1), 'of 100 answers clearly used tool text that was no longer shown'])
  }
  const sums = tiles.map(([figure, text]) => `<div><b>${prose(figure)}</b><span>${prose(text)}</span></div>`).join('')
  const meanings = POLICY_NAMES.filter((name) => policies[name] !== undefined)
    .map((name) => `<tr${name === 'pi-context-manager' ? ' class="own"' : ''}><td>${name}</td><td style="white-space:normal">${MEANING[name]}</td></tr>`)
    .join('')
  const explained = `<details><summary>What the policies are</summary><table>${meanings}</table></details>`
  const totals = single ? '' : `${table(summary)}${missedUses(policies, summary.calls)}`
  const list = single || summary.sessions === 0 ? '' : '<h2>Sessions, by what they save</h2>'
  return `${head}<div class="big">${sums}</div>${totals}${explained}${list}`
}

/** A session's position on the page: those that save most come first. */
function orderOf(report: SessionReport): number {
  const row = rowOf(report)
  // A million tokens on a plan count as much as a dollar.
  const saved = row === undefined ? 0 : (row.without - row.own) / (row.unit === 'tokens' ? 1_000_000 : 1)
  return Math.max(-2_000_000_000, Math.min(2_000_000_000, -Math.round(saved * 10_000)))
}

/** A session in a line: when, of which program, which project, what it saved. */
function titleOf(report: SessionReport): string {
  const { file, cwd, format, from } = report
  const row = rowOf(report)
  const written = (amount: number): string => (row?.unit === 'tokens' ? `${tokens(amount)} tokens` : money(amount, report.unit))
  const verb = row?.unit === 'tokens' ? 'sent' : 'paid'
  const parts = [...(from === undefined ? [] : [dayOf(from)]), programTitle(format), ...(cwd === '/' ? [] : [basename(cwd)])]
  const saved =
    row === undefined
      ? ''
      : row.isManaged === true
        ? `, ${accountText({ paid: row.own, without: row.without }, written, verb)}`
        : `, ${written(row.own)} instead of ${row.isAssumed === true ? '' : 'the '}${written(row.without)}${row.isAssumed === true ? '' : ` ${verb}`}, ${difference(row.own / row.without)}`
  return `<b>${escape(parts.join(' '))}</b>${prose(saved)} <span class="dim" title="${escape(file)}">${escape(basename(file))}</span>`
}

function session(report: SessionReport, open: boolean): string {
  const { calls, models, charsPerToken, systemTokens, details, unit, policies } = report
  const skipped = [...Object.entries(report.skipped).map(([kind, count]) => `${count} ${kind}`), ...[sideNote(report.side) ?? []].flat()]
  const left = skipped.length === 0 ? '' : `; left out: ${skipped.join(', ')}`
  const facts = `${counted(calls, 'answer')}, ${regimeText(report.regime)}, ${models.join(', ') || 'unknown model'}, ${charsPerToken.toFixed(2)} characters a token, system prompt and tools ${tokens(systemTokens)} tokens${left}`
  const lines = POLICY_NAMES.filter((name) => details.series[name] !== undefined)
  const size = lineChart(
    'Context size over calls',
    lines.map((name) => ({ name, values: details.series[name]?.tokens ?? [] })),
    tokens,
    details.rolls.map(rollMark),
  )
  const cheap = lines.filter((name) => name !== 'sections' || lines.length === 1)
  const cost = lineChart(
    'Cost over calls',
    cheap.map((name) => ({ name, values: details.series[name]?.cost ?? [] })),
    (value) => money(value, unit),
  )
  const legend = lines.map((name) => `<span><i style="background:var(--${name})"></i>${name}</span>`).join('')
  const figures = [
    `<figure><figcaption>Context size over calls, tokens; ticks are rolls</figcaption>${size}</figure>`,
    ...(isOnPlan(report)
      ? []
      : [`<figure><figcaption>Cost over calls${cheap.length < lines.length ? ' (without sections)' : ''}</figcaption>${cost}</figure>`]),
    where(report),
    active(report),
  ]
  return `<details class="session" style="order:${orderOf(report)}"${open ? ' open' : ''}><summary>${titleOf(report)}</summary><p class="dim">${escape(facts)}</p>${table(report)}${missedUses(policies, calls)}<div class="legend">${legend}</div><div class="charts">${figures.join('')}</div>${rolls(report)}</details>\n`
}

function table(measured: Measured): string {
  const { names, rows } = measuresOf(measured)
  const own = names.indexOf('pi-context-manager')
  const body = rows.map(({ label, cells }) => {
    const depth = label.length - label.trimStart().length
    const columns = names.map((_, at) => `<td class="n${at === own ? ' own' : ''}">${prose(cells[at] ?? '')}</td>`)
    return `<tr><td class="what" style="padding-left:${0.6 + depth / 2}em">${escape(label.trim())}</td>${columns.join('')}</tr>`
  })
  const heads = names.map((name, at) => `<th class="n policy${at === own ? ' own' : ''}">${name}</th>`)
  return `<div class="scroll"><table><thead><tr><th></th>${heads.join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div>`
}

function where({ details }: SessionReport): string {
  const pi = details.byLabel.pi ?? details.byLabel.append ?? {}
  const own = details.byLabel['pi-context-manager'] ?? {}
  const labels = [...new Set([...Object.keys(pi), ...Object.keys(own)])]
  const rows = labels
    .map((label) => ({ label, values: [pi[label] ?? 0, own[label] ?? 0] as [number, number] }))
    .sort((left, right) => Math.max(...right.values) - Math.max(...left.values))
    .slice(0, 10)
  if (rows.length === 0) return ''
  const drawn = bars('Where the tokens went', rows, ['pi', 'pi-context-manager'], tokens)
  return `<figure><figcaption>Where the tokens went: Pi and this context manager, summed over all requests</figcaption>${drawn}</figure>`
}

function active({ details, calls }: SessionReport): string {
  const largest = [...details.lifetimes].sort((left, right) => right.units - left.units).slice(0, MAX_SPANS)
  const spans = largest
    .sort((left, right) => left.born - right.born)
    .map(({ label, units, born, rolled }) => ({
      label,
      from: born,
      to: rolled,
      text: `${label}, ${Math.round(units)} characters, calls ${born} to ${rolled ?? 'the end'}`,
    }))
  if (spans.length === 0) return ''
  const tools = [...new Set(spans.map((span) => span.label))].slice(0, 8)
  const legend = tools
    .map(
      (tool) =>
        `<span><i style="background:var(--${toolClass(tool)
          .replace('tool-', '')
          .replace(/find|ls/, 'grep')})"></i>${escape(tool)}</span>`,
    )
    .join('')
  const caption = `When it was in the window: the ${spans.length} largest tool results, each from its first call to the roll that collapsed it`
  return `<figure><figcaption>${caption}</figcaption><div class="legend">${legend}</div>${timeline(caption, spans, calls)}</figure>`
}

function rolls({ details }: SessionReport): string {
  if (details.rolls.length === 0) return ''
  const rows = details.rolls.map((roll) => {
    const back = roll.paysBackAfterCalls === undefined ? '–' : String(roll.paysBackAfterCalls)
    const cells = [roll.call, roll.reason, roll.items, tokens(roll.removedTokens), tokens(roll.cost), tokens(roll.gain), back]
    return `<tr>${cells.map((cell) => `<td class="n">${escape(String(cell))}</td>`).join('')}</tr>`
  })
  const heads = ['before call', 'why', 'items', 'tokens gone', 'cost once', 'saves a call', 'pays after calls']
  return `<details><summary>${details.rolls.length} rolls and their receipts</summary><div class="scroll"><table><thead><tr>${heads.map((head) => `<th class="n">${head}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div></details>`
}

function rollMark({ call, items, removedTokens, reason }: SessionReport['details']['rolls'][number]): {
  call: number
  text: string
} {
  return { call, text: `roll before call ${call}: ${items} items, ${tokens(removedTokens)} tokens, ${reason}` }
}
