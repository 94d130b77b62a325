/**
 * An agent's loop in its plainest form: it keeps what the provider answered as it came, appends results, and sends all of
 * it again. In Anthropic's messages format and in OpenAI's responses format.
 */
import type { ModelServer } from './model-server.ts'

/** The options with which a loop is started. */
export interface LoopOptions {
  server: Pick<ModelServer, 'url'>
  api: 'anthropic-messages' | 'openai-responses'
  /** Default `scripted`. */
  model?: string
  /** Default: one tool, `show`. May be changed between prompts. */
  tools?: { name: string; description: string; parameters: object }[]
  /** Returns a tool's answer: a text, or blocks in the provider's format. */
  run(name: string, args: any): string | object[] | Promise<string | object[]>
  /** Returns the messages to send instead of the conversation. Default: the conversation. */
  prepare?(messages: readonly object[]): object[] | Promise<object[]>
  /** More fields of the body, such as `thinking`. */
  body?: object
  headers?: Record<string, string>
}

/** An answer that was refused. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** A conversation. */
export class PlainLoop {
  /** The loop's own conversation, which may be changed. */
  readonly messages: any[] = []
  readonly options: LoopOptions

  constructor(options: LoopOptions) {
    this.options = options
  }

  /** One turn of the user, until the model calls nothing any more. Rejects with `Refused`. */
  async prompt(text: string): Promise<void> {
    this.messages.push({ role: 'user', content: text })
    await this.resume()
  }

  /** Goes on from where a refusal stopped it. */
  async resume(): Promise<void> {
    for (;;) {
      const answer = await this.#ask()
      const calls = this.#take(answer)
      if (calls.length === 0) return
      const results: [string, string | object[]][] = []
      for (const { id, name, args } of calls) results.push([id, await this.options.run(name, args)])
      if (this.options.api === 'anthropic-messages') {
        this.messages.push({ role: 'user', content: results.map(([id, text]) => ({ type: 'tool_result', tool_use_id: id, content: text })) })
      } else for (const [id, text] of results) this.messages.push({ type: 'function_call_output', call_id: id, output: text })
    }
  }

  /** Adds an answer to the conversation. Returns its calls. */
  #take(answer: any): { id: string; name: string; args: unknown }[] {
    if (this.options.api === 'anthropic-messages') {
      this.messages.push({ role: 'assistant', content: answer.content })
      return answer.content.filter(({ type }: any) => type === 'tool_use').map(({ id, name, input }: any) => ({ id, name, args: input }))
    }
    this.messages.push(...answer.output)
    return answer.output
      .filter(({ type }: any) => type === 'function_call')
      .map(({ call_id: id, name, arguments: args }: any) => ({ id, name, args: JSON.parse(args) }))
  }

  async #ask(): Promise<any> {
    const { server, api, model = 'scripted', tools = [SHOW], prepare, body, headers } = this.options
    const sent = (await prepare?.(this.messages)) ?? this.messages
    const isAnthropic = api === 'anthropic-messages'
    const request = isAnthropic
      ? { system: 'You help.', max_tokens: 1000, messages: sent, tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })) }
      : { instructions: 'You help.', store: false, input: sent, tools: tools.map((tool) => ({ type: 'function', ...tool })) }
    const response = await fetch(`${server.url}/v1/${isAnthropic ? 'messages' : 'responses'}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, stream: true, ...request, ...body }),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Refused(response.status, JSON.parse(text).error.message)
    const events = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    return isAnthropic ? messageOf(events) : events.at(-1).response
  }
}

const SHOW = {
  name: 'show',
  description: 'Shows a text',
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}

/** The message that Anthropic's events build up. */
function messageOf(events: any[]): any {
  const message = { ...events.find(({ type }) => type === 'message_start').message, content: [] as any[] }
  let json = ''
  for (const event of events) {
    const block = message.content[event.index]
    if (event.type === 'content_block_start') {
      message.content[event.index] = { ...event.content_block }
      json = ''
    } else if (event.type === 'content_block_delta') {
      const { type, ...delta } = event.delta
      if (type === 'input_json_delta') json += delta.partial_json
      else if (type === 'signature_delta') block.signature = delta.signature
      else if (type === 'citations_delta') block.citations = [...block.citations, delta.citation]
      else for (const [name, text] of Object.entries(delta)) block[name] += text
    } else if (event.type === 'content_block_stop' && 'input' in block) block.input = JSON.parse(json || '{}')
  }
  return message
}
