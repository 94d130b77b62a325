/** A model that says how likely a text is. It has one sequence, whose cached prefix is kept between requests. */
export interface Model {
  /** The number of tokens that were decoded, for estimates. */
  readonly decoded: number
  /** Returns the tokens of a text; `<|im_start|>` and its like are read as marks only if `hasMarks`. */
  tokenize(text: string, hasMarks: boolean): number[]
  /** Returns the bytes of a token. */
  bytesOf(token: number): Buffer
  /** Returns `-log p` of each token of `answer` after `prompt`, in nats. Both stay in the cache. */
  nats(prompt: readonly number[], answer: readonly number[]): Promise<Float32Array>
  /** Frees what the model holds; later calls fail. */
  close(): void
}
