/** A host's changes between two requests of a conversation, in sentences: of its tools, its system prompt, its settings, its messages. */
import { isFields, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { geminiField, isEqual } from '../projection/index.ts'
import { commonLength, fingerprintOf } from './prefix.ts'
import type { Api, ModelRequest } from './request.ts'

/** A host's changes before the messages, in sentences. The provider has cached nothing behind them. */
export function headChanges(before: ModelRequest, now: ModelRequest): string[] {
  const settings = SETTINGS[before.api].filter(([, valueIn]) => !isEqual(valueIn(before.body), valueIn(now.body))).map(([name]) => name)
  return [
    ...(isEqual(before.body['tools'], now.body['tools']) ? [] : ['The agent declared other tools.']),
    ...(isEqual(systemOf(before), systemOf(now)) ? [] : ['The agent changed its system prompt.']),
    ...(settings.length === 0 ? [] : [`The agent changed its settings: ${settings.join(', ')}.`]),
  ]
}

/** A host's changes of messages that it has sent before, in sentences. */
export function messageChanges(before: ModelRequest, now: ModelRequest): string[] {
  const [sent, next] = [before, now].map(({ messages }) => messages.slice(systemsIn(messages).length)) as [object[], object[]]
  const common = commonLength(sent, next)
  if (common === sent.length) return []
  const left = new Map<string, number>()
  for (const message of next.slice(common)) left.set(fingerprintOf(message), (left.get(fingerprintOf(message)) ?? 0) + 1)
  const gone = sent.flatMap((message, at) => {
    if (at < common) return []
    const count = left.get(fingerprintOf(message)) ?? 0
    left.set(fingerprintOf(message), count - 1)
    return count > 0 ? [] : [at + 1]
  })
  const of = `of its ${sent.length} messages`
  const [first] = gone
  if (first === undefined) return [`The agent inserted or moved messages before message ${common + 1} ${of}.`]
  if (gone.length === 1) return [`The agent changed or removed message ${first} ${of}.`]
  if (common + gone.length === sent.length) return [`The agent changed or removed the last ${gone.length} ${of}.`]
  return [`The agent changed or removed ${gone.length} ${of}, from message ${first} on.`]
}

type Setting = readonly [name: string, valueIn: (body: Fields) => unknown]

/** A field of a body, or of an object in it. The value that it has where it is absent (`usual`) counts as absent. */
function setting(name: string, usual?: unknown): Setting {
  const path = name.split('.')
  return [
    name,
    (body) => {
      const value = path.reduce<unknown>((fields, one) => (isFields(fields) ? fields[one] : undefined), body) ?? undefined
      return isEqual(value, usual) ? undefined : value
    },
  ]
}

/** The settings with which a provider's prompt begins, or its cache is another one, as the providers' pages on caching list them. */
const SETTINGS: Readonly<Record<Api, readonly Setting[]>> = {
  messages: [
    setting('tool_choice', { type: 'auto' }),
    ['thinking', thinkingIn],
    setting('output_config.effort'),
    setting('output_config.format'),
    setting('speed', 'standard'),
  ],
  responses: [
    setting('reasoning.effort'),
    setting('text.verbosity'),
    setting('text.format', { type: 'text' }),
    setting('parallel_tool_calls', true),
    setting('service_tier', 'auto'),
    setting('prompt_cache_key'),
  ],
  chat: [
    setting('reasoning_effort'),
    setting('verbosity'),
    setting('response_format', { type: 'text' }),
    setting('parallel_tool_calls', true),
    setting('service_tier', 'auto'),
    setting('prompt_cache_key'),
  ],
  gemini: [
    ['toolConfig', (body) => geminiField(body, 'toolConfig')],
    ['cachedContent', (body) => geminiField(body, 'cachedContent')],
  ],
}

/** The setting of Claude's thinking, without the way in which it is shown (`display`): that does not change the prompt. */
function thinkingIn({ thinking }: Fields): unknown {
  if (!isFields(thinking) || thinking['type'] === 'disabled') return undefined
  const { display: _, ...rest } = thinking
  return rest
}

function systemOf({ body, messages }: ModelRequest): unknown {
  const system = body['system'] ?? body['instructions'] ?? geminiField(body, 'systemInstruction')
  const own = Array.isArray(system) ? system.filter((block) => !isStamp(block)) : system
  return [own, ...systemsIn(messages)]
}

/** The messages of the system with which a conversation begins. */
function systemsIn(messages: readonly object[]): readonly object[] {
  const first = messages.findIndex((message) => !['system', 'developer'].includes(textOf((message as Fields)['role'])))
  return messages.slice(0, first < 0 ? messages.length : first)
}

/** Claude Code stamps each request in a block of its system prompt, which its provider takes out before it looks at its cache. */
function isStamp(block: unknown): boolean {
  return isFields(block) && textOf(block['text']).startsWith('x-anthropic-billing-header:')
}
