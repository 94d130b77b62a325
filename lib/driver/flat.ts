/** Turns values that are nested too deeply for the engine into JSON text at that depth. Nothing is lost. */

/** How many levels stay; the engine accepts 100, counted from the whole message. */
const LEVELS = 60

/**
 * `value`, with everything below {@link LEVELS} levels of lists and objects as JSON text; unchanged if it is not that
 * deep.
 */
export function flattened<T>(value: T): T {
  return isDeep(value, LEVELS) ? (flat(value, LEVELS) as T) : value
}

function isDeep(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((one) => isDeep(one, levels - 1))
}

function flat(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return JSON.stringify(value)
  if (Array.isArray(value)) return value.map((one) => flat(one, levels - 1))
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, flat(one, levels - 1)]))
}
