/** The platforms that are published: Rust's name of each, and the oldest glibc that its binary is linked for. */
export const TARGETS: Record<string, { triple: string; glibc?: string }>
/** The newest glibc that a binary asks for, such as `2.28`; undefined where it asks for none. */
export function glibcOf(path: string): string | undefined
/** Throws with a sentence where a platform's binary asks for a newer glibc than we promise. */
export function checkGlibc(platform: string, path: string): void
