/**
 * Gemini's format, as its API speaks it and refuses it. From the API's documentation of function calling and thought signatures:
 * a function call comes right after a word of the user or a function response; its responses come right after it, one for each
 * call; and the first call of each step since the user last spoke has the signature that it came with.
 */
import type { ScriptedCall, SentMessage, Usage, WirePart } from './exchange.ts'

/** Passes the check of signatures. */
const SKIPPED = 'skip_thought_signature_validator'

/** The model in a path. */
export function geminiModel(path: string): string | undefined {
  return /\/models\/([^/:]+):(?:generateContent|streamGenerateContent)/.exec(path)?.[1]
}

/** A value with its fields in the first of the two spellings that the API takes. */
export function camelled(value: any): any {
  if (Array.isArray(value)) return value.map(camelled)
  if (typeof value !== 'object' || value === null) return value
  const free = (name: string): boolean => name === 'args' || name === 'response'
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), free(name) ? one : camelled(one)]),
  )
}

/** The address where a login with Google leads: the model is in the body, and Gemini's request is a field of it. */
const CODE_ASSIST = /\/v1internal:(\w+)$/

/** True if a request's path generates an answer by Code Assist. */
export function isCodeAssist(path: string): boolean {
  return /^(?:g|streamG)enerateContent$/.test(CODE_ASSIST.exec(path.split('?')[0] ?? '')?.[1] ?? '')
}

/** The answer of Code Assist to another question of a program that is logged in with Google; undefined for another path. */
export function codeAssistAnswer(path: string): object | undefined {
  const asked = CODE_ASSIST.exec(path.split('?')[0] ?? '')?.[1]
  if (asked === undefined) return undefined
  return asked === 'loadCodeAssist' ? { currentTier: { id: 'free-tier', name: 'free' }, cloudaicompanionProject: 'project' } : {}
}

/** The messages of a body, with the system prompt first. */
export function geminiMessages(given: any): SentMessage[] {
  const body = { ...given, systemInstruction: given.systemInstruction ?? given.system_instruction }
  const told = body.systemInstruction === undefined ? [] : [{ role: 'system', parts: body.systemInstruction.parts ?? [] }]
  return [...told, ...body.contents].map((content: any) => {
    const parts: any[] = camelled(content.parts ?? [])
    const results = parts.flatMap(({ functionResponse: one }) =>
      one === undefined ? [] : [{ id: String(one.id ?? one.name), text: resultText(one.response) }],
    )
    const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
    const role = results.length > 0 ? 'tool' : content.role === 'model' ? 'assistant' : content.role === 'system' ? 'system' : 'user'
    return {
      role,
      text: (results.length > 0 ? results.map(({ text }) => text) : texts).join('\n'),
      calls: parts.flatMap(({ functionCall: call }) =>
        call === undefined ? [] : [{ id: String(call.id ?? call.name), name: String(call.name), args: JSON.stringify(call.args ?? {}) }],
      ),
      results,
      json: JSON.stringify(content),
    }
  })
}

/** The tools of a body. */
export function geminiTools(body: any): any[] {
  return (body.tools ?? []).flatMap((tool: any) => tool.functionDeclarations ?? tool.function_declarations ?? [])
}

function resultText(response: any): string {
  return typeof response?.output === 'string' ? response.output : typeof response?.error === 'string' ? response.error : JSON.stringify(response ?? {})
}

/** The API's checks over several requests: the signatures that it has given, and the calls that carry them. */
export class GeminiSignatures {
  readonly #given = new Map<string, string>()

  /** Signs the first call of an answer. */
  sign(call: ScriptedCall): string {
    const signature = Buffer.from(`signature ${this.#given.size} of ${call.id}`).toString('base64')
    this.#given.set(signature, said(call.name, call.args))
    return signature
  }

  /** The sentence of a 400; undefined for a request that the API takes. */
  refusal(body: any): string | undefined {
    const contents: any[] = camelled(body.contents ?? [])
    if (contents.length === 0) return 'contents is not specified'
    if ((contents.at(-1).role ?? 'user') !== 'user') return 'Please ensure that the last content is of the user'
    const spoken = contents.findLastIndex((content) => content.role !== 'model' && responses(content).length === 0)
    for (const [at, content] of contents.entries()) {
      const before = contents[at - 1]
      if ((content.parts ?? []).length === 0) return `contents[${at}].parts: must not be empty`
      if (responses(content).length > 0 && (before?.role !== 'model' || calls(before).length === 0))
        return 'Please ensure that function response turn comes immediately after a function call turn.'
      const own = calls(content)
      if (own.length === 0) continue
      if (before === undefined || before.role === 'model')
        return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
      const answers = distinct(responses(contents[at + 1] ?? {}))
      if (answers.length !== own.length)
        return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
      if (answers.some((one, n) => one.name !== own[n].name)) return 'Please ensure that the names of function responses are those of the function calls.'
      if (at > spoken) {
        const refusal = this.#unsigned(content, at)
        if (refusal !== undefined) return refusal
      }
    }
    return undefined
  }

  #unsigned(content: any, at: number): string | undefined {
    const part = content.parts.find((one: any) => one.functionCall !== undefined)
    const signature = part.thoughtSignature
    if (signature === SKIPPED) return undefined
    if (signature === undefined) return `Function call is missing a thought_signature in functionCall parts. contents[${at}], ${part.functionCall.name}`
    const given = this.#given.get(signature)
    return given === said(part.functionCall.name, part.functionCall.args) ? undefined : `Invalid thought signature. contents[${at}], ${part.functionCall.name}`
  }
}

function said(name: string, args: unknown): string {
  return JSON.stringify([name, typeof args === 'string' ? JSON.parse(args) : (args ?? {})])
}

function calls(content: any): any[] {
  return (content.parts ?? []).flatMap(({ functionCall: call }: any) => (call === undefined ? [] : [call]))
}

function responses(content: any): any[] {
  return (content.parts ?? []).flatMap(({ functionResponse: one }: any) => (one === undefined ? [] : [one]))
}

/** Gemini CLI 0.61 sends each response twice after a resume, so the API is taken to accept that. */
function distinct(all: any[]): any[] {
  return all.filter((one, at) => one.id === undefined || all.findIndex(({ id }) => id === one.id) === at)
}

/** Writes an answer: as events, or as one body. */
export function geminiEncoder(model: string, id: string, isStream: boolean, signatures: GeminiSignatures, isWrapped = false) {
  const whole: object[] = []
  let isSigned = false
  const metadata = ({ input, cacheRead, output }: Usage): object => ({
    promptTokenCount: input + cacheRead,
    ...(cacheRead > 0 ? { cachedContentTokenCount: cacheRead } : {}),
    candidatesTokenCount: output,
    totalTokenCount: input + cacheRead + output,
  })
  const chunk = (parts: object[], more: object = {}, finish?: string): object => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...(finish === undefined ? {} : { finishReason: finish }) }],
    modelVersion: model,
    responseId: id,
    ...more,
  })
  const text = (value: object): string => JSON.stringify(isWrapped ? { response: value, traceId: id } : value)
  const event = (value: object): string => `data: ${text(value)}\r\n\r\n`
  const wired = (part: WirePart): object => {
    if ('raw' in part) return part.raw
    if ('text' in part) return { text: part.text }
    if ('thinking' in part) return { text: part.thinking, thought: true }
    const { id: callId, name, args } = part.call
    const signed = isSigned ? {} : { thoughtSignature: signatures.sign(part.call) }
    isSigned = true
    return { functionCall: { id: callId, name, args: typeof args === 'string' ? JSON.parse(args) : args }, ...signed }
  }
  return {
    begin: () => (isStream ? event(chunk([], { usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } })) : ''),
    part: (part: WirePart) => {
      const one = wired(part)
      if (isStream) return event(chunk([one]))
      whole.push(one)
      return ''
    },
    end: (_finish: string, usage: Usage) => {
      const last = chunk(whole, { usageMetadata: metadata(usage) }, 'STOP')
      return isStream ? event(last) : text(last)
    },
  }
}
