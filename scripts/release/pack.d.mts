/** Packs the packages of platforms and the main package, which comes last. Throws with what is missing or wrong. */
export function packAll(artifacts: string, out: string, platforms?: readonly string[]): string[]
export function packDependencies(out: string): string[]
