/** Why text that could leave the request is still in it, in words: the same ones on every screen. */
import type { HeldBack } from '../../index.js'
import { tokens as short } from './tokens.ts'

/** Text that is held back, with what only the host knows of it. */
export interface Held extends HeldBack {
  /** The model's name; empty if the host does not name it. */
  model: string
  /** For `off`: the user has not switched anything off, but the model has no tool to bring text back. */
  lacksRecall?: boolean
}

/** Less than this is not worth a word on a line that is always there. In tokens. */
const WORTH_A_STATUS = 20_000

/** The sentence: `180k tokens are held back: claude-opus-5-5 would lose its reasoning; next chance: your next prompt`. */
export function heldText(held: Held): string {
  const { tokens, because, chance, model } = held
  const size = `${short(tokens)} tokens`
  if (because === 'due') return `${size} leave with the next call`
  const then = because === 'off' || chance === undefined ? '' : `; next chance: ${chanceText(held)}`
  const reasons: Readonly<Record<Exclude<HeldBack['because'], 'due'>, string>> = {
    off: held.lacksRecall === true ? 'the model has no tool to bring text back' : 'collapsing is switched off',
    young: 'most of them are likely to be needed again soon',
    unseen: 'the model has not seen them yet',
    turn: 'they leave only when you speak, as you have set',
    bound: `${model === '' ? 'the model' : model} would lose its reasoning`,
    reasoning: `${model === '' ? 'the model' : model} would lose its reasoning`,
    dear: 'what comes after them would have to be written to the cache again, and that costs more than they do so far',
    debt: 'a roll would cost more than it may in a session of this size',
  }
  return `${size} are held back: ${reasons[because]}${then}`
}

/** The same in a few words, for a status line: `180k held back (reasoning) until your next prompt`; undefined if it is not worth them. */
export function heldStatus(held: Held): string | undefined {
  const { tokens, because, chance, lacksRecall } = held
  if (tokens < WORTH_A_STATUS) return undefined
  const reasons: Readonly<Partial<Record<HeldBack['because'], string>>> = {
    ...(lacksRecall === true ? { off: 'no tool to bring it back' } : {}),
    turn: 'your setting',
    bound: 'reasoning',
    reasoning: 'reasoning',
    dear: 'cached',
    debt: 'cost so far',
  }
  const reason = reasons[because]
  if (reason === undefined) return undefined
  const until = because === 'off' || chance === undefined ? '' : chance === 'calls' ? `, ${chanceText(held)}` : ` until ${chanceText(held)}`
  return `${short(tokens)} held back (${reason})${until}`
}

function chanceText({ chance, calls = 1, pauseMs = 0 }: HeldBack): string {
  switch (chance) {
    case 'calls':
      return `in about ${calls} ${calls === 1 ? 'call' : 'calls'}`
    case 'pause':
      return `your next prompt after ${duration(pauseMs)}`
    case 'prompt':
      return 'your next prompt'
    default:
      return 'the next call'
  }
}

function duration(ms: number): string {
  const [count, unit] = ms >= 3_600_000 ? [ms / 3_600_000, 'hour'] : ms >= 60_000 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  const whole = Math.ceil(count)
  return `${whole} ${whole === 1 ? unit : `${unit}s`}`
}
