// The cost of the two hashes of a file in TypeScript's usual way: sorted keys, JSON.stringify, createHash. The first line on stdin
// is the file's text in JSON; each further line is answered with the milliseconds of one run.
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'

/** A value's JSON with sorted keys. */
function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const fields = Object.keys(value).sort()
  return `{${fields.map((name) => `${JSON.stringify(name)}:${stable(value[name])}`).join(',')}}`
}

const sha256 = (data) => createHash('sha256').update(data).digest('hex')

let text
let bytes
for await (const line of createInterface({ input: process.stdin })) {
  if (text === undefined) {
    text = JSON.parse(line)
    bytes = Buffer.from(text)
    continue
  }
  const start = performance.now()
  sha256(bytes)
  sha256(stable({ file_type: 'rs', char_count: text.length, content: text }))
  console.log(performance.now() - start)
}
