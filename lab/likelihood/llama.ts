/**
 * llama.cpp as a library: the binaries that `node-llama-cpp` publishes, called through koffi. Its own interface sorts the
 * whole vocabulary for each probability (8 tokens a second here); the logits themselves come as quickly as the prompt.
 */
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Model } from './model.ts'

/** Tokens that are decoded at once; logits of an answer need 600 KB for each of them. */
const BATCH = 256

/** Bytes of parameter structures as we pass them: larger than the library's, which it reads by offset. */
const STRUCT_BYTES = 512

/** The first fields of `llama_context_params` by default; another layout has other values here. */
const CONTEXT_DEFAULTS = [512, 2048, 512, 1]

/** A call into the library. */
type Native = (...args: unknown[]) => unknown

interface Koffi {
  load(path: string, options?: { global?: boolean }): { func(declaration: string): Native }
  struct(name: string, fields: Record<string, string>): unknown
  opaque(name: string): unknown
  decode(pointer: unknown, type: string, length: number): Float32Array
  view(pointer: unknown, bytes: number): ArrayBuffer
}

/** The size of a context and the number of threads. */
export interface LlamaOptions {
  /** A folder with `node_modules/koffi` and `node_modules/@node-llama-cpp/...`. */
  tools: string
  /** The GGUF file. */
  model: string
  /** Tokens of the context. */
  context: number
  threads: number
}

/** A model with one sequence, whose cached prefix is kept between requests. */
export class Llama implements Model {
  readonly #functions: Record<string, Native>
  readonly #context: unknown
  readonly #vocab: unknown
  readonly #memory: unknown
  readonly #words: number
  readonly #view: (pointer: unknown, bytes: number) => ArrayBuffer
  /** The tokens in the cache. */
  #cached: number[] = []
  decoded = 0

  /** Loads the library and the model; throws if either can't be used. */
  constructor(options: LlamaOptions) {
    const load = createRequire(join(options.tools, 'package.json'))
    const koffi = load('koffi') as Koffi
    const folder = join(options.tools, 'node_modules/@node-llama-cpp/linux-x64/bins/linux-x64')
    // The names of structures hold for the process, which may load several models.
    loaded += 1
    const [paramsType, batchType] = [`params${loaded}`, `batch${loaded}`]
    koffi.struct(paramsType, { words: `uint32_t[${STRUCT_BYTES / 4}]` })
    koffi.struct(batchType, { n: 'int32_t', token: 'void *', embd: 'void *', pos: 'void *', n_seq: 'void *', seq: 'void *', logits: 'void *' })
    koffi.load(join(folder, 'libggml-base.so'), { global: true })
    const ggml = koffi.load(join(folder, libraryNamed(folder, 'libggml')), { global: true })
    const llama = koffi.load(join(folder, libraryNamed(folder, 'libllama')))
    ggml.func('void ggml_backend_load_all_from_path(const char *path)')(folder)
    const declared = (text: string): Native => llama.func(text)
    const f = {
      modelDefaults: declared(`${paramsType} llama_model_default_params()`),
      contextDefaults: declared(`${paramsType} llama_context_default_params()`),
      loadModel: declared(`void *llama_model_load_from_file(const char *path, ${paramsType} p)`),
      open: declared(`void *llama_init_from_model(void *model, ${paramsType} p)`),
      vocab: declared('void *llama_model_get_vocab(void *model)'),
      words: declared('int32_t llama_vocab_n_tokens(void *vocab)'),
      tokenize: declared('int32_t llama_tokenize(void *vocab, const char *text, int32_t length, void *tokens, int32_t max, bool special, bool parse)'),
      piece: declared('int32_t llama_token_to_piece(void *vocab, int32_t token, void *text, int32_t max, int32_t strip, bool special)'),
      memory: declared('void *llama_get_memory(void *context)'),
      remove: declared('bool llama_memory_seq_rm(void *memory, int32_t sequence, int32_t from, int32_t to)'),
      decode: declared(`int32_t llama_decode(void *context, ${batchType} b)`),
      logits: declared('void *llama_get_logits_ith(void *context, int32_t index)'),
    }
    declared('void llama_log_set(void *callback, void *data)')(koffi.load('libc.so.6').func('void *dlsym(void *handle, const char *name)')(null, 'abs'), null)
    declared('void llama_backend_init()')()
    const params = f.contextDefaults() as { words: number[] }
    if (CONTEXT_DEFAULTS.some((value, index) => params.words[index] !== value)) {
      throw new Error(`this llama.cpp has another layout of its parameters: ${[...params.words].slice(0, 8).join(' ')}`)
    }
    const threads = params.words.findIndex((value, index) => index >= 4 && value === DEFAULT_THREADS)
    if (threads < 0) throw new Error('this llama.cpp has another layout of its parameters: no number of threads')
    params.words[0] = options.context
    params.words[1] = BATCH
    params.words[2] = BATCH
    params.words[threads] = options.threads
    params.words[threads + 1] = options.threads
    const model = f.loadModel(options.model, f.modelDefaults())
    if (model === null) throw new Error(`llama.cpp can't load ${options.model}`)
    const context = f.open(model, params)
    if (context === null) throw new Error(`llama.cpp can't open a context of ${options.context} tokens`)
    this.#context = context
    this.#vocab = f.vocab(model)
    this.#words = f.words(this.#vocab) as number
    this.#memory = f.memory(context)
    this.#functions = f
    this.#view = (pointer, bytes) => koffi.view(pointer, bytes)
  }

  tokenize(text: string, hasMarks: boolean): number[] {
    const bytes = Buffer.byteLength(text)
    const tokens = new Int32Array(bytes + 1)
    const count = this.#functions['tokenize']?.(this.#vocab, text, bytes, tokens, tokens.length, false, hasMarks) as number
    if (count < 0) throw new Error(`a text of ${bytes} bytes has more than ${tokens.length} tokens`)
    return [...tokens.subarray(0, count)]
  }

  bytesOf(token: number): Buffer {
    const bytes = Buffer.alloc(256)
    const length = this.#functions['piece']?.(this.#vocab, token, bytes, bytes.length, 0, true) as number
    return bytes.subarray(0, Math.max(0, length))
  }

  async nats(prompt: readonly number[], answer: readonly number[]): Promise<Float32Array> {
    const all = [...prompt, ...answer]
    let kept = 0
    // The last token of the prompt is decoded again: its logits are those of the answer's first token.
    while (kept < prompt.length - 1 && kept < this.#cached.length && this.#cached[kept] === all[kept]) kept += 1
    this.#functions['remove']?.(this.#memory, 0, kept, -1)
    this.#cached = all.slice(0, kept)
    const nats = new Float32Array(answer.length)
    const first = prompt.length - 1
    for (let at = kept; at < all.length;) {
      const to = Math.min(at + BATCH, all.length)
      this.#decode(all, at, to, first)
      for (let index = Math.max(at, first); index < Math.min(to, all.length - 1); index += 1) {
        nats[index - first] = this.#surprise(index - at, all[index + 1] as number)
      }
      at = to
    }
    this.#cached = all
    return nats
  }

  /** The process ends with its memory. */
  close(): void {}

  #decode(all: readonly number[], from: number, to: number, first: number): void {
    const n = to - from
    const token = Int32Array.from(all.slice(from, to))
    const pos = Int32Array.from({ length: n }, (_, index) => from + index)
    const logits = Int8Array.from({ length: n }, (_, index) => (from + index >= first ? 1 : 0))
    const batch = { n, token, embd: null, pos, n_seq: null, seq: null, logits }
    const code = this.#functions['decode']?.(this.#context, batch)
    if (code !== 0) throw new Error(`llama.cpp can't decode ${n} tokens from ${from} on (${String(code)})`)
    this.decoded += n
  }

  /** `log sum exp(logits) - logit`, in nats. */
  #surprise(index: number, token: number): number {
    const pointer = this.#functions['logits']?.(this.#context, index)
    const logits = new Float32Array(this.#view(pointer, this.#words * 4))
    let top = Number.NEGATIVE_INFINITY
    for (const logit of logits) if (logit > top) top = logit
    let sum = 0
    for (const logit of logits) sum += Math.exp(logit - top)
    return top + Math.log(sum) - (logits[token] as number)
  }
}

/** The number of models that this process has loaded. */
let loaded = 0

/** The library's default number of threads. */
const DEFAULT_THREADS = 4

/** The library's file, whose name has its version. */
function libraryNamed(folder: string, name: string): string {
  const found = readdirSync(folder).find((file) => file.startsWith(`${name}.`) && file.endsWith('.so'))
  if (found === undefined) throw new Error(`${folder} has no ${name}`)
  return found
}
