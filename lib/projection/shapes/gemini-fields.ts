/** The fields of Gemini's requests, which the API takes in two spellings: `functionCall` and `function_call`. litellm has the second one. */
import type { Fields } from '../../core/index.ts'

/** The second spelling of each field that we look at. */
const SPELT = {
  functionCall: 'function_call',
  functionDeclarations: 'function_declarations',
  functionResponse: 'function_response',
  inlineData: 'inline_data',
  fileData: 'file_data',
  executableCode: 'executable_code',
  codeExecutionResult: 'code_execution_result',
  systemInstruction: 'system_instruction',
  toolCall: 'tool_call',
  toolResponse: 'tool_response',
  thoughtSignature: 'thought_signature',
  toolConfig: 'tool_config',
  cachedContent: 'cached_content',
} as const

/** A field of a request in Gemini's format, in its first spelling. */
export type GeminiField = keyof typeof SPELT | 'text'

/** The spelling that an object has of a field; the first one if it lacks the field. */
export function geminiName(fields: Fields, name: GeminiField): string {
  const other = name === 'text' ? name : SPELT[name]
  return other in fields ? other : name
}

/** The value of a field in either spelling. */
export function geminiField(fields: Fields, name: GeminiField): unknown {
  return fields[geminiName(fields, name)]
}
