/** Finds the conversation of another process that a request continues, among those whose forms are stored. */
import { appliedItems } from '../projection/index.ts'
import { withRest } from './beginning.ts'
import type { Remembered, StoredForm } from './form-files.ts'
import { isPaired } from './pairs.ts'
import { linkOf } from './prefix.ts'
import type { ModelRequest } from './request.ts'
import { lengthsOf } from './said.ts'
import type { Said } from './said.ts'
import type { Unsealed } from './seal.ts'
import { shapeOf } from './shape.ts'

/** A conversation of another process, and how many of a request's messages it had. */
export interface Near {
  stored: Remembered
  common: number
  /** All that it had. */
  isWhole: boolean
  /** It is the same chat, which its host has written anew. */
  isAnew?: true
}

/** The longest one that a chain continues; if there is none, the one that has most in common with it. */
export function storedFor(known: readonly Remembered[], chain: readonly string[]): Near | undefined {
  const found = known.map((stored): Near => {
    const common = commonLinks(stored.form.links, chain)
    return { stored, common, isWhole: common === stored.form.links.length - 1 }
  })
  const nearest = (all: readonly Near[]): Near | undefined => all.toSorted((one, other) => one.common - other.common).at(-1)
  return nearest(found.filter(({ isWhole }) => isWhole)) ?? nearest(found)
}

/** The same for a host that names no session: also the chat that it has written anew, if that is here. */
export function storedForSaid(known: readonly Remembered[], chain: readonly string[], said: () => Said): Near | undefined {
  const near = storedFor(known, chain)
  if (near === undefined || near.isWhole) return near
  const lengths = lengthsOf(said())
  const same = known.flatMap((stored) => stored.form.said.flatMap((mark) => ({ stored, length: lengths.get(mark) ?? 0 }))).filter(({ length }) => length > 0)
  const stored = same.toSorted((one, other) => one.length - other.length).at(-1)?.stored
  return stored === undefined ? near : { stored, common: commonLinks(stored.form.links, chain), isWhole: false, isAnew: true }
}

/**
 * True if a request continues a stored conversation of the same name, although parts differ: the user may have
 * gone back, or its first messages have another date now. If most of it is missing, the host has compacted it.
 */
export function isSame({ stored }: Near, { messages }: ModelRequest): boolean {
  return messages.length > 2 && messages.length * 2 >= stored.form.links.length - 1
}

/** The number of messages that a stored form and a chain have in common. */
export function commonLinks(links: readonly string[], chain: readonly string[]): number {
  let most = Math.min(links.length, chain.length) - 1
  while (most > 0 && links[most] !== linkOf(chain[most] as string)) most -= 1
  return most
}

/** A form for the first messages of a request; undefined if it is damaged, or splits calls from their results. */
export function opened(form: StoredForm, chain: readonly string[], common: number, { api, messages }: ModelRequest): Unsealed | undefined {
  const found = common === 0 ? undefined : form.open(chain, common)
  const own = messages.slice(0, common)
  return found !== undefined && isPaired(appliedItems(own, withRest(found, common)), own, shapeOf(api)) ? found : undefined
}
