/** Progress on the screen: one line that is rewritten in a terminal, plain lines elsewhere. */

/** The output for progress. */
interface Progress {
  /**
   * The current step. In a terminal it replaces the last such line; elsewhere it is printed when `key` (default: the line) differs
   * from the last one's.
   */
  update(line: string, key?: string): void
  /** A line that stays. */
  print(line?: string): void
}

/** Progress on a stream. */
export function progressOn(stream: NodeJS.WriteStream): Progress {
  const terminal = stream.isTTY === true
  let open = false
  let lastKey: string | undefined
  return {
    update(line, key = line) {
      if (terminal) {
        stream.write(`\r\x1b[2K${line.slice(0, Math.max(20, (stream.columns || 80) - 1))}`)
        open = true
      } else if (key !== lastKey) {
        stream.write(`${line}\n`)
      }
      lastKey = key
    },
    print(line = '') {
      if (open) stream.write('\r\x1b[2K')
      open = false
      stream.write(`${line}\n`)
    },
  }
}
