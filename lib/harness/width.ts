/** Objects with very many fields are refused before anything walks through them again and again. */
import { invalid } from '../errors.ts'

/** The most fields of one object; as in the native part. Lists may be longer. */
const MOST_FIELDS = 100_000

/** Objects that were found to be wider. Listing their names is what takes long, so it is done once. */
const wide = new WeakSet<object>()

/** Throws `INVALID_ARGUMENT` where a value holds an object with more fields than are taken. Ends its count there. */
export function checkWidth(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) for (const one of value) checkWidth(one)
  else if (isWide(value)) throw invalid(`an object has more than ${MOST_FIELDS} fields; make a list of them, or a text`)
  else for (const name in value) checkWidth((value as Record<string, unknown>)[name])
}

function isWide(value: object): boolean {
  if (wide.has(value)) return true
  let fields = 0
  for (const _ in value) {
    if ((fields += 1) <= MOST_FIELDS) continue
    wide.add(value)
    return true
  }
  return false
}
