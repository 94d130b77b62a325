import type { StoredContext } from './types.ts'

/**
 * Reads a file's text.
 * @throws Error that says what is wrong: not JSON (for instance half a file), or not a stored context.
 */
export function storedContext(text: string): StoredContext {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value)) throw new Error('it is not a JSON object')
  if (!('result' in value)) throw new Error('it has no field result')
  checkMetadata(value)
  return value as unknown as StoredContext
}

/**
 * Checks the fields other than the result.
 * @throws Error that names the missing or mistyped field.
 */
function checkMetadata(value: unknown): asserts value is Omit<StoredContext, 'result'> {
  if (!isRecord(value)) throw new Error('it is not a JSON object')
  for (const field of ['toolName', 'toolDescription', 'timestamp']) {
    if (typeof value[field] !== 'string') throw new Error(`its ${field} is not a string`)
  }
  if (!isRecord(value['args'])) throw new Error('its args are not an object')
  if (value['taskId'] !== undefined && typeof value['taskId'] !== 'number') throw new Error('its taskId is not a number')
  if (value['queryId'] !== undefined && typeof value['queryId'] !== 'string') throw new Error('its queryId is not a string')
}

/** True if a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
