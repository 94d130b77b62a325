/** The environment of a process. */

/** Its variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>
