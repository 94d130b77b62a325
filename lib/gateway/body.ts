/** Bodies of requests: read up to a limit, decoded, encoded again. */
import { isAscii } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'

/** Larger bodies pass through unread. */
const LARGEST_BODY = 64 * 1024 * 1024

/** A decoded body must not be larger than this; otherwise it passes as it is. */
const LARGEST_DECODED = 256 * 1024 * 1024

/** The part of a body that was read. */
export interface Body {
  bytes: Buffer
  /** True if this is all of it. If not, the rest is still in the request's stream. */
  isWhole: boolean
}

/** Reads a body. Rejects if the client disconnects before its end. */
export async function readBody(request: IncomingMessage, largest = LARGEST_BODY): Promise<Body> {
  const chunks: Buffer[] = []
  let size = 0
  const iterator = request.iterator({ destroyOnReturn: false })
  for await (const chunk of iterator) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size > largest) return { bytes: Buffer.concat(chunks), isWhole: false }
  }
  if (!request.complete) throw new Error('the client has disconnected')
  return { bytes: Buffer.concat(chunks), isWhole: true }
}

type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

/** Node has zstd from 22.15 on. */
const { zstdDecompress } = zlib as { zstdDecompress?: typeof zlib.gunzip }

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['gzip', promisify(zlib.gunzip) as unknown as Decoder],
  ['x-gzip', promisify(zlib.gunzip) as unknown as Decoder],
  ['deflate', promisify(zlib.inflate) as unknown as Decoder],
  ['br', promisify(zlib.brotliDecompress) as unknown as Decoder],
  ...(zstdDecompress === undefined ? [] : ([['zstd', promisify(zstdDecompress) as unknown as Decoder]] as const)),
])

/** Returns whether bodies in a content coding can be read. */
export function canDecode(coding: string | undefined): boolean {
  return coding === undefined || coding === '' || coding === 'identity' || DECODERS.has(coding.toLowerCase())
}

/** Decodes a body. Rejects if it is damaged or too large. */
export async function decoded(bytes: Buffer, coding: string | undefined): Promise<Buffer> {
  const decode = DECODERS.get(coding?.toLowerCase() ?? '')
  return decode === undefined ? bytes : decode(bytes, { maxOutputLength: LARGEST_DECODED })
}

/** The text of a body. One byte for each character is several times faster to read. */
export function textOf(bytes: Buffer): string {
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8')
}

/** A stream that decodes an answer for us while it passes; undefined for a plain one, `null` for an unknown coding. */
export function decoderOf(coding: string | undefined): zlib.Gunzip | zlib.BrotliDecompress | undefined | null {
  switch (coding?.toLowerCase()) {
    case undefined:
    case '':
    case 'identity':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip()
    case 'deflate':
      return zlib.createInflate()
    case 'br':
      return zlib.createBrotliDecompress()
    case 'zstd': {
      const { createZstdDecompress } = zlib as { createZstdDecompress?: () => zlib.Gunzip }
      return createZstdDecompress?.() ?? null
    }
    default:
      return null
  }
}
