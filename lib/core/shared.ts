/**
 * Tables that all copies of the package in one process share. A dependency may bring its own copy: a session that one copy has
 * opened can then be passed to a function of another, which must find the same entries.
 */

/** The table of this name, which the first copy that asks makes. */
export function shared<T extends object>(name: string, make: () => T): T {
  const tables = globalThis as unknown as Record<symbol, T | undefined>
  return (tables[Symbol.for(`pi-context-manager.${name}`)] ??= make())
}
