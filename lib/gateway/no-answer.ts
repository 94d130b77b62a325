/** Why an upstream has not answered, in words for people; the system's own word is beside it. */
import { sentenceOf } from '../core/index.ts'

/** The error that a client is told of. */
export function noAnswer(failure: unknown, host: string): Error {
  const { code = '' } = failure as { code?: unknown }
  const word = typeof code === 'string' ? code : ''
  const why = word.startsWith('HPE_') ? `${host} has answered with something other than HTTP` : WHY[word]?.(host)
  return why === undefined ? (failure as Error) : new Error(`${why} (${word})`, { cause: sentenceOf(failure) })
}

const closed = (host: string): string => `${host} has closed the connection before it answered`

const WHY: Readonly<Record<string, (host: string) => string>> = {
  ECONNREFUSED: (host) => `no server answers at ${host}`,
  ECONNRESET: closed,
  EPIPE: closed,
  ENOTFOUND: (host) => `the name of ${host} is not known`,
  EAI_AGAIN: (host) => `the name of ${host} can't be looked up now`,
  ETIMEDOUT: (host) => `${host} does not answer`,
  EHOSTUNREACH: (host) => `${host} can't be reached`,
  ENETUNREACH: (host) => `${host} can't be reached: this machine has no way to its network`,
}
