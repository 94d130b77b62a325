/** A request and its answer, as the scripted providers and the checks share them. */
import type { IncomingHttpHeaders } from 'node:http'

/** One request, as it arrived. */
export interface ModelRequest {
  /** Number on this server, from 0. */
  n: number
  api: Api
  /** The request's path, such as `/v1/chat/completions`. */
  path: string
  headers: IncomingHttpHeaders
  /** The body's bytes. */
  raw: Buffer
  /** The body, parsed. */
  body: any
  /** The messages, the system prompt first. */
  messages: SentMessage[]
  /** Names of the tools that the model may call, those included that the conversation adds on the way. */
  tools: string[]
  /** `summary` for a compaction or branch summary: no tools, and Pi's summarizing system prompt. */
  kind: 'agent' | 'summary'
  /**
   * The text that a prefix cache sees: tools, then the messages, as JSON, one a line. Tools that are declared for later
   * (`defer_loading`) are not part of it; the message that adds them is.
   */
  prompt: string
  /** The end of each message's line in `prompt`, in UTF-16 units; the first entry is the end of the tools. */
  ends: number[]
  /** Tokens of this request as the server reported them to Pi; set when the answer is sent. */
  usage?: { input: number; output: number; cacheRead: number; cacheWrite: number }
  /** The HTTP status that was answered; set when the answer is sent. */
  status?: number
  /** The verdict of a provider that binds its reasoning; only from a strict server. */
  verdict?: Verdict
  /** Resolves with true when the client hung up before the answer was complete, false when it was sent. */
  aborted: Promise<boolean>
}

/** One message as the model was sent it. */
export interface SentMessage {
  /** `tool` carries tool results, whatever role the format gives them. */
  role: 'system' | 'user' | 'assistant' | 'tool'
  /** Its texts, joined by line breaks; a tool message's texts are its results'. */
  text: string
  /** Tool calls of an assistant message, in order; `args` is JSON text. */
  calls: { id: string; name: string; args: string }[]
  /** Results of a tool message. */
  results: { id: string; text: string }[]
  /** The message's JSON as sent, without cache markers, which are not part of the prompt. */
  json: string
}

/** The provider format of a request, in Pi's names. */
export type Api = 'openai-completions' | 'anthropic-messages' | 'openai-responses' | 'bedrock-converse-stream' | 'google-generative-ai'

/** A tool call in a reply. */
export interface ScriptedCall {
  /** The provider's id; default `call_<request>_<position>`. May be empty or repeated: providers do both. */
  id?: string
  /** The tool's name. */
  name: string
  /** The namespace that it is declared in, in OpenAI's responses format. */
  namespace?: string
  /** The arguments, or their raw JSON text (which may be broken on purpose). */
  args: object | string
}

/** Tokens of one reply, as Pi counts them; each is reported to Pi as it stands. */
export interface Usage {
  /** Prompt tokens that were neither read from the cache nor written to it. */
  input: number
  /** Tokens of the answer. */
  output: number
  /** Prompt tokens read from the cache. */
  cacheRead: number
  /** Prompt tokens written to the cache. */
  cacheWrite: number
}

/** A content part without gates, calls with their ids. */
export type WirePart =
  | { text: string }
  | { thinking: string; signature?: string; /** Only the signature comes, in Anthropic's format. */ isRedacted?: true }
  | { call: ScriptedCall }
  | RawPart

/** A block, item or part in the provider's own form: a call that the provider runs, its result, a text with citations. */
export interface RawPart {
  raw: any
}

/** A provider's verdict on a request. */
export interface Verdict {
  outcome: Outcome
  /** The sentence of the 400, if it is refused. */
  refusal: string | undefined
  mismatches: Mismatch[]
  /** The changes that the answer reports. */
  transformations: Transformation[]
}

/** A block that no longer fits its conversation. */
export interface Mismatch {
  /** Its place in the request. */
  path: string
  /** The signature, which tells blocks apart. */
  signature: string
  /** It belongs to the turn under way. */
  isRunning: boolean
}

/** An entry of `input_transformations`. */
export interface Transformation {
  type: string
  /** OpenAI's. */
  action?: 'removed'
  path: string
  reason: string
}

/** A provider's treatment of blocks that no longer fit. */
export type Outcome = 'refuses' | 'drops' | 'keeps'
