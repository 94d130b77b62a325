/** The screen of `sessions` in a terminal: a list, a filter and a preview of the chosen session. It only draws, and applies keys to a state. */
import { basename } from 'node:path'
import { middleCut, plain, wrapped } from '../ui/index.ts'

/** A session in the list. */
export interface ListedSession {
  /** Its short name, which commands take. */
  name: string
  /** The agent's name as people write it. */
  agent: string
  /** When it was last written, in milliseconds since the epoch. */
  at: number
  folder: string
  turns: number
  objects: number
  /** The first prompt; empty if there is none. */
  prompt: string
}

/** The user's choice and filter. */
export interface ListState {
  /** The position among the sessions that pass the filter. */
  selected: number
  filter: string
  isTyping: boolean
}

/** The state at the start. */
export const START: ListState = { selected: 0, filter: '', isTyping: false }

/** The outcome of a key: another state, the end, or the end with a chosen session. */
export type AfterKey = ListState | 'quit' | 'chosen'

/** The sessions that have all words of the filter. */
export function filtered(all: readonly ListedSession[], filter: string): ListedSession[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return [...all]
  return all.filter(({ name, agent, folder, prompt }) => {
    const text = `${name} ${agent} ${folder} ${prompt}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** Keys as terminals send them, by what they do. */
const STEPS: Readonly<Record<string, 'up' | 'down' | 'pageUp' | 'pageDown' | 'first' | 'last'>> = {
  ...{ '\x1b[A': 'up', '\x1bOA': 'up', k: 'up', '\x10': 'up', '\x1b[B': 'down', '\x1bOB': 'down', j: 'down', '\x0e': 'down' },
  ...{
    '\x1b[5~': 'pageUp',
    '\x1b[6~': 'pageDown',
    ' ': 'pageDown',
    '\x1b[H': 'first',
    '\x1bOH': 'first',
    '\x1b[1~': 'first',
    g: 'first',
    '\x1b[F': 'last',
    '\x1bOF': 'last',
    '\x1b[4~': 'last',
    G: 'last',
  },
}

/** Applies one key. `count`: the sessions that pass the filter; `page`: the rows of the list. */
export function pressed(state: ListState, key: string, count: number, page: number): AfterKey {
  if (key === '\x03' || key === '\x04') return 'quit'
  if (key === '\r' || key === '\n') return state.isTyping && count === 0 ? state : count === 0 ? 'quit' : 'chosen'
  const isLetter = key.length === 1
  if (state.isTyping) {
    if (key === '\x1b') return START
    if (key === '\x7f' || key === '\b') return { ...state, selected: 0, filter: [...state.filter].slice(0, -1).join('') }
    if (key === '\x15') return { ...state, selected: 0, filter: '' }
    if (!key.startsWith('\x1b') && !/[\x00-\x1f]/.test(key)) return { ...state, selected: 0, filter: state.filter + key }
  } else {
    if (key === 'q' || (key === '\x1b' && state.filter === '')) return 'quit'
    if (key === '\x1b') return START
    if (key === '/') return { ...state, isTyping: true }
  }
  const step = state.isTyping && isLetter && !/[\x00-\x1f]/.test(key) ? undefined : STEPS[key]
  if (step === undefined) return state
  const by = { up: -1, down: 1, pageUp: -page, pageDown: page, first: -count, last: count }[step]
  return { ...state, selected: Math.max(0, Math.min(count - 1, state.selected + by)) }
}

/** Splits what a terminal has sent at once into keys. */
export function keysIn(input: string): string[] {
  return input.match(/\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|[^]/gu) ?? []
}

/** The rows of the list in a terminal of this height. */
export function pageOf(height: number): number {
  return Math.max(1, height - PREVIEW - 3)
}

/** Rows of the preview, with the line above it. */
const PREVIEW = 7

/** The screen's lines: exactly `height`, none wider than `width`. `now` is in milliseconds since the epoch. */
export function drawSessions(all: readonly ListedSession[], state: ListState, width: number, height: number, now: number): string[] {
  const rows = filtered(all, state.filter)
  const page = pageOf(height)
  const from = Math.max(0, Math.min(rows.length - page, state.selected - Math.floor(page / 2)))
  const count = rows.length === all.length ? `${all.length}` : `${rows.length} of ${all.length}`
  const head =
    state.isTyping || state.filter !== ''
      ? `Filter: ${plain(state.filter)}${state.isTyping ? '_' : ''}  (${count})`
      : `${count} ${all.length === 1 ? 'session' : 'sessions'}`
  const list = rows.slice(from, from + page).map((row, at) => {
    const line = rowLine(row, width, now)
    return from + at === state.selected ? `\x1b[7m${line.padEnd(width)}\x1b[27m` : line
  })
  const empty = rows.length === 0 ? [cut('No session has these words.', width)] : []
  const body = [...list, ...empty, ...Array<string>(page).fill('')].slice(0, page)
  const chosen = rows[state.selected]
  const below = [...(chosen === undefined ? [] : previewLines(chosen, width, now)), ...Array<string>(PREVIEW).fill('')].slice(0, PREVIEW - 1)
  const keys = state.isTyping ? 'words filter · ↑↓ choose · Enter open · Esc all' : '↑↓ choose · / filter · Enter open · q quit'
  return [cut(head, width), ...body, '─'.repeat(width), ...below, cut(keys, width)].slice(0, height)
}

function rowLine({ agent, at, folder, prompt, name }: ListedSession, width: number, now: number): string {
  const where = plain(middleCut(basename(folder) || folder || '-', Math.max(8, Math.floor(width / 6)))).padEnd(Math.max(8, Math.floor(width / 6)))
  return cut(`${age(now - at).padStart(4)}  ${agent.padEnd(11)}  ${where}  ${plain(prompt === '' ? name : prompt)}`, width)
}

function previewLines({ name, agent, at, folder, turns, objects, prompt }: ListedSession, width: number, now: number): string[] {
  const counted = `${turns} ${turns === 1 ? 'turn' : 'turns'}, ${objects} ${objects === 1 ? 'object' : 'objects'}`
  const about = [`${plain(name)}  ${agent}, ${age(now - at)} ago, ${counted}`, plain(folder === '' ? 'folder not known' : folder)]
  return [...about.map((line) => cut(line, width)), ...wrapped(plain(prompt), width).map((line) => cut(line, width))]
}

/** An age in four characters at most: `5m`, `3h`, `12d`, `8w`, `2y`. */
export function age(ms: number): string {
  const units: [ms: number, name: string, below: number][] = [
    [60_000, 'm', 60],
    [3_600_000, 'h', 48],
    [86_400_000, 'd', 21],
    [604_800_000, 'w', 104],
    [31_557_600_000, 'y', Infinity],
  ]
  for (const [unit, name, below] of units) if (ms / unit < below) return `${Math.max(0, Math.floor(ms / unit))}${name}`
  return '-'
}

function cut(line: string, width: number): string {
  return line.length > width ? `${line.slice(0, Math.max(0, width - 1))}…` : line
}
