/**
 * Bedrock's Converse: its requests read as Anthropic's messages, which say the same, and its answers as AWS's event stream.
 *
 * Sources: the API reference of ConverseStream, and "Amazon Event Stream Specification" (smithy.io).
 */
import { crc32 } from 'node:zlib'
import type { Usage, WirePart } from './exchange.ts'

/** The model in a path such as `/model/us.anthropic.claude-opus-5-5-v1%3A0/converse-stream`; undefined for any other path. */
export function bedrockModel(path: string): string | undefined {
  const found = /^\/model\/([^/]+)\/converse-stream$/.exec(path)
  return found === null ? undefined : decodeURIComponent(found[1]!)
}

/** A Converse body as a body of Anthropic's messages. The fields that Anthropic's API has beside are passed on as they are. */
export function inMessages(body: any): any {
  const { anthropic_beta: _betas, ...fields } = body.additionalModelRequestFields ?? {}
  return {
    ...fields,
    system: (body.system ?? []).flatMap(({ text }: any) => (text === undefined ? [] : [{ type: 'text', text }])),
    messages: body.messages.map(({ role, content }: any) => ({ role, content: content.flatMap(blockOf) })),
    tools: (body.toolConfig?.tools ?? []).flatMap(({ toolSpec }: any) =>
      toolSpec === undefined ? [] : [{ name: toolSpec.name, description: toolSpec.description, input_schema: toolSpec.inputSchema?.json }],
    ),
  }
}

/** The betas of a Converse body. */
export function betasOf(body: any): string {
  return (body.additionalModelRequestFields?.anthropic_beta ?? []).join(',')
}

function blockOf(block: any): object[] {
  if (block.text !== undefined) return [{ type: 'text', text: block.text }]
  if (block.toolUse !== undefined) return [{ type: 'tool_use', id: block.toolUse.toolUseId, name: block.toolUse.name, input: block.toolUse.input }]
  if (block.toolResult !== undefined) {
    const { toolUseId, content, status } = block.toolResult
    return [{ type: 'tool_result', tool_use_id: toolUseId, content: content.flatMap(blockOf), ...(status === 'error' ? { is_error: true } : {}) }]
  }
  const { reasoningText, redactedContent } = block.reasoningContent ?? {}
  if (reasoningText !== undefined) return [{ type: 'thinking', thinking: reasoningText.text, signature: reasoningText.signature ?? '' }]
  if (redactedContent !== undefined) return [{ type: 'redacted_thinking', data: redactedContent }]
  // Cache points are no part of the prompt.
  return block.cachePoint === undefined ? [{ type: 'other', block }] : []
}

/** Writes one answer. The calls come in this order: begin, part any number of times, end. */
export function converse() {
  let index = -1
  return {
    begin: (): Buffer => event('messageStart', { role: 'assistant' }),
    part(part: WirePart): Buffer {
      index += 1
      const contentBlockIndex = index
      const delta = (value: object): Buffer => event('contentBlockDelta', { contentBlockIndex, delta: value })
      const stop = event('contentBlockStop', { contentBlockIndex })
      if ('text' in part) return Buffer.concat([delta({ text: part.text }), stop])
      if ('raw' in part) throw new Error('raw blocks are for the other formats')
      if ('thinking' in part) {
        const { thinking, signature = '' } = part
        return Buffer.concat([delta({ reasoningContent: { text: thinking } }), delta({ reasoningContent: { signature } }), stop])
      }
      const { id, name, args } = part.call
      const start = event('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: id, name } } })
      return Buffer.concat([start, delta({ toolUse: { input: typeof args === 'string' ? args : JSON.stringify(args) } }), stop])
    },
    end(finish: 'stop' | 'length' | 'toolUse', usage: Usage): Buffer {
      const { input, output, cacheRead, cacheWrite } = usage
      const counts = {
        inputTokens: input,
        outputTokens: output,
        totalTokens: input + output + cacheRead + cacheWrite,
        cacheReadInputTokens: cacheRead,
        cacheWriteInputTokens: cacheWrite,
      }
      const stopReason = finish === 'toolUse' ? 'tool_use' : finish === 'length' ? 'max_tokens' : 'end_turn'
      return Buffer.concat([event('messageStop', { stopReason }), event('metadata', { usage: counts, metrics: { latencyMs: 1 } })])
    },
  }
}

/** One message of an event stream: lengths, headers, payload, and a checksum after the lengths and after all of it. */
function event(type: string, payload: object): Buffer {
  const body = Buffer.from(JSON.stringify(payload))
  const headers = Buffer.concat([header(':event-type', type), header(':content-type', 'application/json'), header(':message-type', 'event')])
  const lengths = Buffer.alloc(8)
  lengths.writeUInt32BE(16 + headers.length + body.length, 0)
  lengths.writeUInt32BE(headers.length, 4)
  const start = Buffer.concat([lengths, checksum(lengths), headers, body])
  return Buffer.concat([start, checksum(start)])
}

/** A header with a text. */
function header(name: string, text: string): Buffer {
  const value = Buffer.from(text)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(value.length)
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, value])
}

function checksum(bytes: Buffer): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes))
  return sum
}
