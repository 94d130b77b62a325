/**
 * The handling of reasoning by the provider of a Pi session once something before it has changed: by the model's name, by
 * what Pi's requests ask for, and by what answers have reported.
 */
import type { ExtensionContext, SessionEntry } from '@earendil-works/pi-coding-agent'
import { askedOf, isBindingRefusal, ObservedBinding, rulesOf, Withheld } from '../lib/models/index.ts'
import type { Binding, ModelRules } from '../lib/models/index.ts'
import { entriesBack } from './messages.ts'
import type { SessionTree } from './messages.ts'

type Model = NonNullable<ExtensionContext['model']>

/** Returns what is known about one of Pi's models by its name. */
export function rulesFor({ id, provider, api }: Model): ModelRules {
  return rulesOf(id, { provider, api })
}

/** The binding of one session's models. */
export class SessionBinding {
  readonly #setting: Binding | undefined
  readonly #lastRequest: () => unknown
  readonly #observed = new ObservedBinding()
  readonly #withheld = new Withheld()
  /** Entries of refusals that have been dealt with. */
  readonly #handled = new Set<string>()
  #hasRead = false

  /** `setting`: what the user says, over everything but a refusal. `lastRequest` gives the payload of the last request. */
  constructor(setting: Binding | undefined, lastRequest: () => unknown = () => undefined) {
    this.#setting = setting
    this.#lastRequest = lastRequest
  }

  /** The binding of the next call to a model. */
  of(model: Model | undefined): Binding {
    if (model === undefined) return this.#setting ?? 'none'
    const { binding, askedBinding } = rulesFor(model)
    const table = binding === 'refuses' && asksForDrops(model, this.#lastRequest()) ? askedBinding : binding
    return this.#observed.binding(nameOf(model), table, this.#setting)
  }

  /** Takes in what the newest answers of a branch say. Call it before each model call; it reads back to the last answer. */
  follow(branch: SessionTree): void {
    for (const entry of entriesBack(branch)) {
      if (entry.type === 'message' && entry.message.role === 'assistant') {
        const { provider, model, stopReason } = entry.message
        if (isRefusal(entry)) this.#observed.refused(`${provider}/${model}`)
        else if (stopReason !== 'error' && stopReason !== 'aborted') {
          this.#observed.answered(`${provider}/${model}`, entry.message)
          return
        }
      }
    }
  }

  /**
   * Withholds all reasoning before each refusal on a branch. Reads the whole branch the first time, and after that only if
   * the newest answer is a refusal. Returns how many blocks are withheld that were not before.
   */
  withhold(session: SessionTree & { getBranch(): SessionEntry[] }): number {
    const newest = newestAnswer(session)
    if (this.#hasRead && (newest === undefined || !isRefusal(newest) || this.#handled.has(newest.id))) return 0
    this.#hasRead = true
    let added = 0
    const entries = session.getBranch()
    for (const [index, entry] of entries.entries()) {
      if (!isRefusal(entry) || this.#handled.has(entry.id)) continue
      this.#handled.add(entry.id)
      added += this.#withheld.add(entries.slice(0, index).flatMap((one) => (one.type === 'message' ? [one.message] : [])))
    }
    return added
  }

  /** A payload without the reasoning that is withheld; undefined if it has none of it. */
  changed(payload: unknown): unknown {
    if (this.#withheld.size === 0 || typeof payload !== 'object' || payload === null) return undefined
    const name = ['messages', 'input'].find((field) => Array.isArray((payload as Record<string, unknown>)[field]))
    if (name === undefined) return undefined
    const sent = (payload as Record<string, object[]>)[name] as object[]
    const left = this.#withheld.without(sent)
    return left.every((message, index) => message === sent[index]) && left.length === sent.length ? undefined : { ...payload, [name]: left }
  }
}

/**
 * True if Pi's requests to a model ask for drops: as the last one did, or before the first as Pi does where it
 * sets an effort for each answer (not through GitHub Copilot, Vercel or Cloudflare; with thinking off, only some
 * versions).
 */
function asksForDrops(model: Model, lastRequest: unknown): boolean {
  const { model: sentTo, modelId } = (lastRequest ?? {}) as { model?: unknown; modelId?: unknown }
  if (sentTo === model.id || modelId === model.id) return askedOf(lastRequest) === 'drops'
  return (model.compat as { supportsMidConvoEffort?: boolean } | undefined)?.supportsMidConvoEffort === true
}

/** The last answer before an entry, also one that failed. */
function newestAnswer(branch: SessionTree): SessionEntry | undefined {
  for (const entry of entriesBack(branch)) if (entry.type === 'message' && entry.message.role === 'assistant') return entry
  return undefined
}

function isRefusal(entry: SessionEntry): boolean {
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return false
  const { stopReason, errorMessage } = entry.message
  return stopReason === 'error' && isBindingRefusal(errorMessage)
}

function nameOf({ provider, id }: Model): string {
  return `${provider}/${id}`
}
