/**
 * Fields of objects whose names come from a model, a host or a store: they may be called like what every object inherits
 * (`__proto__`, `constructor`, `toString`).
 */

/** The value of an object's own field; undefined if it has none of this name. */
export function fieldOf<T>(object: Readonly<Record<string, T>>, name: string): T | undefined {
  return name in Object.prototype && !Object.hasOwn(object, name) ? undefined : object[name]
}

/** Sets an object's own field. Unlike an assignment, this also makes one named `__proto__`. */
export function setField<T>(object: Record<string, T>, name: string, value: T): void {
  if (name in Object.prototype) Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}
