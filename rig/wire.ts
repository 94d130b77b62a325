/** Answers in the provider formats, written as a provider writes them. */
import { converse } from './bedrock.ts'
import type { Api, ScriptedCall, Transformation, Usage, WirePart } from './exchange.ts'

/** Writes one answer. The calls come in this order: begin, part any number of times, end. */
interface Encoder {
  begin(usage: Usage): string | Buffer
  part(part: WirePart): string | Buffer
  end(finish: 'stop' | 'length' | 'toolUse', usage: Usage): string | Buffer
}

/**
 * An encoder for one answer. `model` is echoed, as providers do; `id` names the answer. `transformations`: what a provider
 * that binds its reasoning reports about the request. `isLong`: what is written to the cache stays there for an hour.
 */
export function encoder(api: Api, model: string, id: string, transformations: readonly Transformation[] = [], isLong = false): Encoder {
  const report = transformations.length === 0 ? {} : { input_transformations: transformations }
  if (api === 'openai-completions') return completions(model, id)
  if (api === 'bedrock-converse-stream') return converse()
  if (api === 'anthropic-messages') return anthropic(model, id, report, isLong)
  return responses(model, id, report)
}

/** The body of an error answer in the format of `api`. */
export function errorBody(api: Api, status: number, sentence: string): string {
  const type = status === 529 ? 'overloaded_error' : status >= 500 ? 'server_error' : 'invalid_request_error'
  if (api === 'bedrock-converse-stream') return JSON.stringify({ message: sentence })
  if (api === 'anthropic-messages') return JSON.stringify({ type: 'error', error: { type, message: sentence } })
  return JSON.stringify({ error: { message: sentence, type, code: status } })
}

/** The signature that the scripted model gives to its reasoning, unless it binds it. */
export function signatureOf(thinking: string): string {
  return Buffer.from(thinking).toString('base64')
}

function argumentText(call: ScriptedCall): string {
  return typeof call.args === 'string' ? call.args : JSON.stringify(call.args)
}

function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite
}

function completions(model: string, id: string): Encoder {
  let callIndex = 0
  const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
    `data: ${JSON.stringify({
      id,
      object: 'chat.completion.chunk',
      created: 0,
      model,
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...more,
    })}\n\n`
  return {
    begin: () => chunk({ role: 'assistant', content: '' }),
    part: (part) => {
      if ('raw' in part) return chunk(part.raw)
      if ('text' in part) return chunk({ content: part.text })
      if ('thinking' in part) return chunk({ reasoning_content: part.thinking })
      const index = callIndex
      callIndex += 1
      const head = { index, id: part.call.id, type: 'function', function: { name: part.call.name, arguments: '' } }
      const body = { index, function: { arguments: argumentText(part.call) } }
      return chunk({ tool_calls: [head] }) + chunk({ tool_calls: [body] })
    },
    end: (finish, usage) => {
      const reason = finish === 'toolUse' ? 'tool_calls' : finish
      const prompt = promptTokens(usage)
      const counts = {
        prompt_tokens: prompt,
        completion_tokens: usage.output,
        total_tokens: prompt + usage.output,
        prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
      }
      const last = { id, object: 'chat.completion.chunk', created: 0, model, choices: [], usage: counts }
      return `${chunk({}, reason)}data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`
    },
  }
}

function anthropic(model: string, id: string, report: object, isLong: boolean): Encoder {
  let index = -1
  const event = (type: string, fields: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const counts = (usage: Usage) => ({
    input_tokens: usage.input,
    output_tokens: usage.output,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
    ...(isLong && { cache_creation: { ephemeral_1h_input_tokens: usage.cacheWrite } }),
  })
  const block = (start: object, deltas: object[]): string => {
    index += 1
    return (
      event('content_block_start', { index, content_block: start }) +
      deltas.map((delta) => event('content_block_delta', { index, delta })).join('') +
      event('content_block_stop', { index })
    )
  }
  return {
    begin: (usage) =>
      event('message_start', {
        message: {
          id,
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...counts(usage), output_tokens: 1 },
          ...report,
        },
      }),
    part: (part) => {
      if ('raw' in part) return rawBlock(part.raw, block)
      if ('text' in part) return block({ type: 'text', text: '' }, [{ type: 'text_delta', text: part.text }])
      if ('thinking' in part) {
        const { thinking, signature = signatureOf(thinking) } = part
        if (part.isRedacted === true) return block({ type: 'redacted_thinking', data: signature }, [])
        return block({ type: 'thinking', thinking: '', signature: '' }, [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature },
        ])
      }
      return block({ type: 'tool_use', id: part.call.id, name: part.call.name, input: {} }, [
        { type: 'input_json_delta', partial_json: argumentText(part.call) },
      ])
    },
    end: (finish, usage) => {
      const reason = finish === 'toolUse' ? 'tool_use' : finish === 'length' ? 'max_tokens' : 'end_turn'
      return event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: counts(usage) }) + event('message_stop', {})
    },
  }
}

/** Anthropic's way to stream a block of the provider's: a call's input and a text with its citations come in pieces. */
function rawBlock(raw: any, block: (start: object, deltas: object[]) => string): string {
  if (raw.type === 'text')
    return block({ type: 'text', text: '', citations: [] }, [
      { type: 'text_delta', text: raw.text },
      ...raw.citations.map((citation: object) => ({ type: 'citations_delta', citation })),
    ])
  if (raw.input === undefined) return block(raw, [])
  return block({ ...raw, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(raw.input) }])
}

function responses(model: string, id: string, report: object): Encoder {
  const output: object[] = []
  let sequence = 0
  const event = (type: string, fields: object): string => {
    sequence += 1
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, ...fields })}\n\n`
  }
  const item = (started: object, middle: (index: number) => string, done: object): string => {
    const index = output.length
    output.push(done)
    return (
      event('response.output_item.added', { output_index: index, item: started }) +
      middle(index) +
      event('response.output_item.done', { output_index: index, item: done })
    )
  }
  return {
    begin: () => event('response.created', { response: { id, object: 'response', created_at: 0, status: 'in_progress', model } }),
    part: (part) => {
      if ('raw' in part) return item({ ...part.raw, status: 'in_progress' }, () => '', part.raw)
      const itemId = `${id}_${output.length}`
      if ('text' in part) {
        const base = { id: `msg_${itemId}`, type: 'message', role: 'assistant' }
        const content = [{ type: 'output_text', text: part.text, annotations: [] }]
        return item(
          { ...base, status: 'in_progress', content: [] },
          (output_index) => event('response.output_text.delta', { item_id: base.id, output_index, content_index: 0, delta: part.text }),
          { ...base, status: 'completed', content },
        )
      }
      if ('thinking' in part) {
        const base = { id: `rs_${itemId}`, type: 'reasoning' }
        return item(
          { ...base, summary: [] },
          (output_index) =>
            event('response.reasoning_summary_text.delta', {
              item_id: base.id,
              output_index,
              summary_index: 0,
              delta: part.thinking,
            }),
          {
            ...base,
            summary: [{ type: 'summary_text', text: part.thinking }],
            encrypted_content: part.signature ?? signatureOf(part.thinking),
          },
        )
      }
      const base = {
        id: `fc_${itemId}`,
        type: 'function_call',
        call_id: part.call.id,
        name: part.call.name,
        ...(part.call.namespace === undefined ? {} : { namespace: part.call.namespace }),
      }
      const text = argumentText(part.call)
      return item(
        { ...base, status: 'in_progress', arguments: '' },
        (output_index) =>
          event('response.function_call_arguments.delta', { item_id: base.id, output_index, delta: text }) +
          event('response.function_call_arguments.done', { item_id: base.id, output_index, arguments: text }),
        { ...base, status: 'completed', arguments: text },
      )
    },
    end: (finish, usage) => {
      const prompt = promptTokens(usage)
      const response = {
        id,
        object: 'response',
        status: finish === 'length' ? 'incomplete' : 'completed',
        incomplete_details: finish === 'length' ? { reason: 'max_output_tokens' } : null,
        model,
        output,
        ...report,
        usage: {
          input_tokens: prompt,
          input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: prompt + usage.output,
        },
      }
      return event(finish === 'length' ? 'response.incomplete' : 'response.completed', { response })
    },
  }
}
