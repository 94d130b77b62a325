/** The page as HTML: regions that are replaced as a whole, and lists whose rows are replaced one by one. */
import { basename } from 'node:path'
import { dollars, escape, heldText, lifetimeText, lineChart, percent, prose, ROLL_REASONS, savingText, shortened, tokens } from '../../ui/index.ts'
import { changeRows, changesText } from './changes.ts'
import { hostTitle } from '../../core/index.ts'
import type { HostName } from '../../core/index.ts'
import type { RollReceipt } from '../../../index.js'
import { CALL_KINDS, PAUSES } from '../../models/index.ts'
import type { Savings } from '../../ui/index.ts'
import type { Usage } from '../answer.ts'
import type { Call, SessionSums } from '../ledger.ts'
import { accountLine, accountShown, savedShare } from '../saving.ts'
import type { Look, ShownOutput } from './look.ts'

/** The regions and lists that are shown at a time. */
export interface PageView {
  /** By the ID of their element. */
  regions: Record<string, string>
  /** By the ID of their element: rows in order, each with its key. */
  lists: Record<string, [key: string, html: string][]>
}

/** The number of listed breaks, the newest ones. */
const MOST_BREAKS = 30

/** Draws everything. `selected` is undefined before the first request, `look` if no conversation of the session is open. */
export function draw(sessions: readonly SessionSums[], selected: SessionSums | undefined, look: Look | undefined): PageView {
  const names = shortened(sessions.map(({ session }) => session))
  const regions = {
    totals: totals(sessions),
    ...(selected === undefined ? nothing() : sessionRegions(selected, look, names.get(selected.session) ?? selected.session)),
  }
  return {
    regions,
    lists: {
      sessions: sessions.toReversed().map((one) => [one.session, sessionRow(one, names.get(one.session) ?? one.session, one.session === selected?.session)]),
      outputs: (look?.outputs ?? []).map((one) => [one.object, outputRow(one)]),
      changes: changeRows(look),
      calls: (selected?.calls ?? []).toReversed().map((call) => [String(call.number), callRow(call, selected?.isPlan === true)]),
    },
  }
}

function nothing(): Record<string, string> {
  const waiting = '<h2>Waiting for the first request</h2><p class="dim">As soon as an agent sends one through the gateway, its session appears here.</p>'
  return { head: waiting, figures: '', chart: '', window: '', seen: '', rolls: '', breaks: '' }
}

function sessionRegions(selected: SessionSums, look: Look | undefined, name: string): Record<string, string> {
  return {
    head: head(selected, look, name),
    figures: figures(selected, look),
    chart: chart(selected),
    window: windowOf(look),
    seen: changesText(look),
    rolls: rolls(selected, look),
    breaks: chosenLifetime(selected) + lossesText(selected) + breaks(selected),
  }
}

function totals(sessions: readonly SessionSums[]): string {
  if (sessions.length === 0) return ''
  const requests = sessions.reduce((sum, one) => sum + one.requests, 0)
  const account = accountLine(sessions.filter(({ isHeldOut }) => !isHeldOut))
  const saved = account === undefined ? '' : `; ${account} (estimated)`
  return prose(`${count(sessions.length, 'session')}, ${count(requests, 'request')}${saved}`)
}

/** A session in the list. `name` is the short one, which commands take. */
function sessionRow(sums: SessionSums, name: string, isSelected: boolean): string {
  const { session, host, prompt, folder, requests, isHeldOut, lastAt } = sums
  const saved = isHeldOut ? 'held out' : savedText(accountShown(sums))
  const id = name.slice(name.indexOf(':') + 1)
  const about = [basename(folder), prompt === '' ? '' : id].filter((part) => part !== '').map((part) => `${escape(part)}, `)
  return `<button type="button" data-session="${escape(session)}" aria-pressed="${isSelected}" title="${escape(session)}"><b>${escape(hostTitle(host as HostName))}</b> <time data-at="${lastAt}">${clock(lastAt)}</time><span>${escape(prompt === '' ? id : prompt)}</span><small>${about.join('')}${prose(`${count(requests, 'call')}${saved === '' ? '' : `, ${saved}`}`)}</small></button>`
}

function savedText(account: Savings): string {
  if (account.without <= 0) return ''
  const share = savedShare(account)
  return Math.abs(share) < 0.005 ? 'nothing saved yet' : savingText(share, percent)
}

function head({ session, host, model, prompt, folder, isHeldOut }: SessionSums, look: Look | undefined, name: string): string {
  const held = isHeldOut ? '<p class="note">This session is held out: it goes out unedited, to be compared with the others.</p>' : ''
  const closed = look === undefined && !isHeldOut ? '<p class="note">No conversation of this session is open. Its figures stay until the gateway ends.</p>' : ''
  return `<h2>${escape(prompt === '' ? session : prompt)}</h2><p class="dim">${escape(hostTitle(host as HostName))}, ${escape(model === '' ? 'model without a name' : model)}${folder === '' ? '' : `, ${escape(folder)}`}, <code title="${escape(session)}">${escape(name)}</code></p>${held}${closed}`
}

function figures(sums: SessionSums, look: Look | undefined): string {
  const { billed, plain, isPriced, isPlan, requests, failures, rolls: receipts, dropped } = sums
  const { paid, without } = accountShown(sums)
  const share = savedShare({ paid, without })
  const [sent, would] = [promptOf(billed), promptOf(plain)]
  const cards = [
    card(without > 0 ? percent(Math.abs(share)) : '–', `${share < 0 ? 'more' : 'saved'}, estimated`),
    ...(isPlan ? roomOf(look) : [card(money(paid, isPriced), `paid; without pi-context-manager ${money(without, isPriced)}, estimated`)]),
    card(tokens(sent), `tokens sent; without pi-context-manager ${tokens(would)}, estimated`),
    card(sent > 0 ? percent(billed.cacheRead / sent) : '–', 'of the input read from the cache'),
    card(String(receipts.length), receipts.length === 1 ? 'roll' : 'rolls'),
    card(String(requests), `${requests === 1 ? 'call' : 'calls'}${failures === 0 ? '' : `, ${failures} without success`}`),
    ...(dropped === 0 ? [] : [card(String(dropped), 'blocks of reasoning that the provider has dropped')]),
  ]
  return `<div class="big">${cards.join('')}</div>`
}

/** At a flat rate, the room in the window says more than dollars. */
function roomOf(look: Look | undefined): string[] {
  if (look === undefined || look.contextWindow === 0) return []
  const { contextTokens, contextWindow } = look
  return [card(tokens(Math.max(0, contextWindow - contextTokens)), `tokens of room in the window of ${tokens(contextWindow)}, estimated`)]
}

function card(figure: string, text: string): string {
  return `<div><b>${prose(figure)}</b><span>${prose(text)}</span></div>`
}

function chart({ calls }: SessionSums): string {
  const shown = calls.filter((call) => call.billed !== undefined && !call.isAside)
  if (shown.length < 2) return ''
  const lines = [
    { name: 'without', values: shown.map(({ plain }) => promptOf(plain)) },
    { name: 'sent', values: shown.map(({ billed }) => promptOf(billed)) },
  ]
  const marks = shown.flatMap(({ roll, number }, call) => (roll === undefined ? [] : [{ call, text: `call ${number}: ${receiptText(roll)}` }]))
  const legend =
    '<p class="legend"><span><i class="sent"></i>sent</span><span><i class="without"></i>without pi-context-manager, estimated</span><span><i class="roll"></i>roll</span></p>'
  return `<figure><figcaption>Tokens of each call</figcaption>${lineChart('Tokens of each call, as sent and without pi-context-manager', lines, tokens, marks)}${legend}</figure>`
}

function windowOf(look: Look | undefined): string {
  if (look === undefined || look.shares.length === 0) return ''
  const { shares, contextTokens, contextWindow } = look
  const of = contextWindow > 0 ? prose(` of ${tokens(contextWindow)} (${percent(contextTokens / contextWindow)})`) : ''
  let at = 0
  const pieces = shares.map(({ name, tokens: size }) => {
    const width = (100 * size) / contextTokens
    const piece = `<rect class="part ${classOf(name)}" x="${at.toFixed(2)}" y="0" width="${Math.max(0, width - 0.15).toFixed(2)}" height="6"><title>${escape(name)}: ${tokens(size)}</title></rect>`
    at += width
    return piece
  })
  const rows = shares.map(
    ({ name, tokens: size }) =>
      `<tr><td><i class="key ${classOf(name)}"></i>${escape(name)}</td><td class="n">${tokens(size)}</td><td class="n">${prose(percent(size / contextTokens))}</td></tr>`,
  )
  return `<figure><figcaption>What fills the window: about ${tokens(contextTokens)} tokens${of}</figcaption><svg class="shares" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">${pieces.join('')}</svg><table>${rows.join('')}</table></figure>`
}

function classOf(name: string): string {
  return `share-${name.replaceAll(/[^a-z]+/g, '-')}`
}

function rolls({ rolls: receipts, calls }: SessionSums, look: Look | undefined): string {
  const held = look?.held === undefined ? '' : `<p class="held">${escape(heldText(look.held))}.</p>`
  if (receipts.length === 0) return `<p class="dim">None yet. Outputs collapse when that pays, and only after the model has seen them.</p>${held}`
  const numbers = new Map(calls.flatMap(({ roll, number }) => (roll === undefined ? [] : [[roll, number] as const])))
  const rows = receipts
    .toReversed()
    .map((one) => `<li>${numbers.has(one) ? `<span class="dim">call ${numbers.get(one)}</span> ` : ''}${escape(receiptText(one))}</li>`)
  return `${held}<ol reversed>${rows.join('')}</ol>`
}

function receiptText({ items, removedTokens, cost, gain, paysBackAfterCalls, reason, reasoningLost = 0 }: RollReceipt): string {
  const back = paysBackAfterCalls === undefined ? '' : `, paid back after ${count(Math.ceil(paysBackAfterCalls), 'call')}`
  const lost = reasoningLost > 0 ? `; reasoning of ${count(reasoningLost, 'step')} lost` : ''
  return `${count(items, 'item')}, ${tokens(removedTokens)} tokens removed: costs ${tokens(cost)} fresh input tokens once, and each later call saves ${tokens(gain)} of them${back}${lost} (${ROLL_REASONS[reason]})`
}

/** The lifetime of the cache, if the gateway chose one. */
function chosenLifetime({ lifetime }: SessionSums): string {
  return lifetime === undefined ? '' : `<p>The cache's lifetime: ${prose(lifetimeText(lifetime))}.</p>`
}

const CAUSES = { roll: 'a roll', host: 'the agent', model: 'another model', time: 'time', unknown: 'the provider' } as const

/** The cache's losses in all, by cause, and the number of finds. */
function lossesText({ cache, isPriced, isPlan }: SessionSums): string {
  const by = (Object.keys(CAUSES) as (keyof typeof CAUSES)[]).flatMap((cause) => {
    const sum = cache.losses[cause]
    return sum === undefined ? [] : [`${CAUSES[cause]} ${sum.count} (${tokens(sum.tokens)} tokens, ${money(sum.cost, isPriced && !isPlan)})`]
  })
  const found = CALL_KINDS.map((kind) => {
    const all = PAUSES.map((pause) => cache.counts[kind][pause])
    const [kept, lost] = [all.reduce((sum, one) => sum + one.kept, 0), all.reduce((sum, one) => sum + one.lost, 0)]
    return kept + lost === 0 ? undefined : `${kept} of ${kept + lost} with ${kind === 'prompt' ? 'a prompt' : 'results'}`
  }).filter((text) => text !== undefined)
  const lost = by.length === 0 ? '' : `<p>What was read again, by its cause: ${by.map(escape).join(', ')}.</p>`
  return `${lost}${found.length === 0 ? '' : `<p class="dim">Calls that could find in the cache what the call before them had sent, and did: ${found.join(', ')}. The price of a roll follows that.</p>`}`
}

function breaks({ calls }: SessionSums): string {
  const broken = calls.filter((call) => call.broken !== undefined).slice(-MOST_BREAKS)
  if (broken.length === 0) return '<p class="dim">Nothing: each call has found in the cache what the one before it had sent.</p>'
  const rows = broken.toReversed().map(({ number, broken: found }) => {
    const { by, tokens: size, causes } = found as NonNullable<Call['broken']>
    return `<li><span class="dim">call ${number}</span> <b>${CAUSES[by]}</b>, ${tokens(size)} tokens read again. ${causes.map(escape).join(' ')}</li>`
  })
  return `<ul>${rows.join('')}</ul>`
}

const FORMS: Readonly<Record<ShownOutput['form'], string>> = { full: 'in full', excerpt: 'excerpt', reference: 'reference', line: 'one line' }

function outputRow({ object, id, tool, name, form, tokens: now, whole, isPinned, isActive, isFailed }: ShownOutput): string {
  const size = form === 'full' ? tokens(whole) : `${tokens(now)} of ${tokens(whole)}`
  const state = [FORMS[form], isPinned ? 'pinned' : '', form === 'full' && !isActive && !isPinned ? 'may collapse' : '', isFailed ? 'failed' : '']
    .filter((word) => word !== '')
    .join(', ')
  const action = (name: string, text: string): string => `<button type="button" tabindex="-1" data-act="${name}" data-id="${escape(object)}">${text}</button>`
  const actions = [action(isPinned ? 'unpin' : 'pin', isPinned ? 'unpin' : 'pin'), action('drop', 'drop'), form === 'full' ? '' : action('back', 'bring back')]
  return `<td class="what"><button type="button" class="open" tabindex="-1" data-act="open" data-id="${escape(object)}">${escape(name)}</button><small>${escape(tool)} id=${id}</small></td><td class="state ${form}">${escape(state)}</td><td class="n">${size}</td><td class="acts">${actions.join('')}</td>`
}

function callRow({ number, at, status, isAborted, isEdited, isAside, headMs, billed, plain, cost, isPriced, roll, broken }: Call, isPlan: boolean): string {
  const said = isAborted ? 'aborted' : status === 200 ? '' : status === 0 ? 'no answer' : String(status)
  const marks = [
    said,
    roll === undefined ? '' : 'roll',
    broken === undefined ? '' : 'cache broken',
    isAside ? 'aside' : '',
    isEdited ? '' : 'unchanged',
  ].filter((word) => word !== '')
  const size = (usage: Usage | undefined): string => (usage === undefined ? '–' : tokens(promptOf(usage)))
  const read = billed === undefined ? '–' : prose(percent(billed.cacheRead / Math.max(1, promptOf(billed))))
  const paid = billed === undefined || isPlan ? '–' : money(cost, isPriced, 3)
  return `<td class="n">${number}</td><td>${clock(at)}</td><td class="n">${size(billed)}</td><td class="n">${size(plain)}</td><td class="n wide">${read}</td><td class="n">${paid}</td><td class="n wide">${Math.round(headMs)} ms</td><td>${escape(marks.join(', '))}</td>`
}

function promptOf(usage: Usage | undefined): number {
  return usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite
}

/** A cost: dollars where the model's prices are known, else fresh input tokens. Single calls are told to the tenth of a cent. */
function money(cost: number, isPriced: boolean, digits = 2): string {
  return isPriced ? dollars(cost, digits) : `${tokens(1_000_000 * cost)} fresh tokens`
}

function count(number: number, word: string): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? word : `${word}s`}`
}

function clock(at: number): string {
  const date = new Date(at)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}
