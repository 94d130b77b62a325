/** Content codings: of whole bodies, and of answers while they pass. */
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'

/** The largest decoded body, in bytes; the gateway treats a larger one as unreadable. */
export const LARGEST_DECODED = 256 * 1024 * 1024

/** Bytes that may wait for a decoder while an answer passes. */
const LARGEST_WAITING = 32 * 1024 * 1024

type Stream = zlib.Gunzip | zlib.BrotliDecompress
type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

/** The decoders of a coding: for a whole body, or for its pieces as they arrive. `first` is the first byte. */
interface Coding {
  whole: (first: number) => Decoder
  stream: (first: number) => Stream
}

/** Node has zstd from 22.15 on. */
const { zstdDecompress, createZstdDecompress } = zlib as { zstdDecompress?: typeof zlib.gunzip; createZstdDecompress?: () => zlib.Gunzip }

const [gunzip, inflate, inflateRaw, unbrotli] = [zlib.gunzip, zlib.inflate, zlib.inflateRaw, zlib.brotliDecompress].map(
  (one) => promisify(one) as unknown as Decoder,
) as [Decoder, Decoder, Decoder, Decoder]

const GZIP: Coding = { whole: () => gunzip, stream: () => zlib.createGunzip() }

const CODINGS: ReadonlyMap<string, Coding> = new Map<string, Coding>([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  // Some servers leave out the header that the standard wants (RFC 9110, 8.4.1.2).
  [
    'deflate',
    {
      whole: (first) => (hasZlibHeader(first) ? inflate : inflateRaw),
      stream: (first) => (hasZlibHeader(first) ? zlib.createInflate() : zlib.createInflateRaw()),
    },
  ],
  ['br', { whole: () => unbrotli, stream: () => zlib.createBrotliDecompress() }],
  ...(zstdDecompress === undefined || createZstdDecompress === undefined
    ? []
    : ([['zstd', { whole: () => promisify(zstdDecompress) as unknown as Decoder, stream: () => createZstdDecompress() }]] as const)),
])

/** The codings that a `Content-Encoding` names, in the order in which they were applied. Several headers are one list. */
export function codingsOf(header: string | readonly string[] | undefined): string[] {
  const list = (typeof header === 'string' ? [header] : (header ?? [])).flatMap((value) => value.split(','))
  return list.map((name) => name.trim().toLowerCase()).filter((name) => name !== '' && name !== 'identity')
}

/** True if bodies in these codings can be read. Real clients nest only a few; each may enlarge its input. */
export function canDecode(codings: readonly string[]): boolean {
  return codings.length <= 4 && codings.every((name) => CODINGS.has(name))
}

/** Decodes a body, its last coding first. Rejects if it is damaged, or larger than `largest` bytes. */
export async function decoded(bytes: Buffer, codings: readonly string[], largest = LARGEST_DECODED): Promise<Buffer> {
  let found = bytes
  for (const name of codings.toReversed()) {
    const decode = CODINGS.get(name)?.whole(found[0] ?? 0)
    if (decode === undefined) throw new RangeError(`the coding ${name} is not known`)
    found = await decode(found, { maxOutputLength: largest })
  }
  return found
}

/** Decodes what passes. The codings must be ones that {@link canDecode} takes. */
export class Decoding {
  readonly #first: Step
  readonly #steps: Step[]
  readonly #done: Promise<void>

  /** `take` gets the decoded bytes in order. */
  constructor(codings: readonly string[], take: (bytes: Buffer) => void) {
    let done = (): void => {}
    this.#done = new Promise((resolve) => (done = resolve))
    let next: { write(bytes: Buffer): void; end(): void } = { write: take, end: done }
    this.#steps = codings.map((name) => {
      const step: Step = new Step(CODINGS.get(name) as Coding, next)
      next = step
      return step
    })
    this.#first = (next instanceof Step ? next : new Step(undefined, next)) as Step
  }

  /** Takes the next bytes. */
  write(bytes: Buffer): void {
    this.#first.write(bytes)
  }

  /** Takes nothing more: what has been decoded is enough. */
  stop(): void {
    for (const step of this.#steps) step.stop()
  }

  /** Resolves when all that has come is decoded: with whether it was what its codings say, up to its end. */
  async end(): Promise<boolean> {
    this.#first.end()
    await this.#done
    return this.#steps.every(({ isDamaged }) => !isDamaged)
  }
}

/** One coding of several. Without one, bytes pass. */
class Step {
  readonly #coding: Coding | undefined
  readonly #next: { write(bytes: Buffer): void; end(): void }
  #stream: Stream | undefined
  #size = 0
  #isOver = false
  isDamaged = false

  constructor(coding: Coding | undefined, next: { write(bytes: Buffer): void; end(): void }) {
    this.#coding = coding
    this.#next = next
  }

  write(bytes: Buffer): void {
    if (bytes.length === 0 || this.#isOver) return
    if (this.#coding === undefined) return this.#next.write(bytes)
    this.#stream ??= this.#open(this.#coding.stream(bytes[0] as number))
    // The answer does not wait for us.
    if (this.#stream.writableLength > LARGEST_WAITING) return this.#fail()
    this.#stream.write(bytes)
  }

  end(): void {
    if (this.#isOver) return
    if (this.#stream === undefined) this.#close()
    else this.#stream.end()
  }

  stop(): void {
    this.#close()
  }

  #open(stream: Stream): Stream {
    stream.on('data', (bytes: Buffer) => {
      this.#size += bytes.length
      if (this.#size > LARGEST_DECODED) this.#fail()
      else this.#next.write(bytes)
    })
    stream.once('end', () => this.#close())
    stream.on('error', () => this.#fail())
    return stream
  }

  #fail(): void {
    this.isDamaged = true
    this.#close()
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream?.destroy()
    this.#next.end()
  }
}

/** True if data in `deflate` begins as zlib does (RFC 1950): raw data hardly ever begins so. */
function hasZlibHeader(first: number): boolean {
  return (first & 0x0f) === 8 && first >> 4 <= 7
}
