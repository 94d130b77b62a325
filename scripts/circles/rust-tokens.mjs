/**
 * The tokens of a Rust source: names, `::`, texts and single characters. Comments, numbers and lifetimes are left out.
 */

const TOKEN = new RegExp(
  [
    /(?<comment>\/\/[^\n]*)/,
    /(?<block>\/\*)/,
    /(?<raw>\b(?:br|cr|r)(?<hashes>#*)"[^]*?"\k<hashes>)/,
    /(?<text>\b[bc]?"(?:\\[^]|[^"\\])*"|"(?:\\[^]|[^"\\])*")/,
    /(?<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])')/,
    /(?<lifetime>'[A-Za-z_]\w*)/,
    /(?<name>(?:r#)?[\p{L}_][\p{L}\p{N}_]*)/,
    /(?<number>\d[\w]*)/,
    /(?<sign>::|[^\s])/,
  ]
    .map((part) => part.source)
    .join('|'),
  'gu',
)

/**
 * @param {string} source
 * @returns {{ text: string, line: number, isName: boolean }[]}
 */
export function tokensOf(source) {
  const tokens = []
  let line = 1
  let counted = 0
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(source); match !== null; match = TOKEN.exec(source)) {
    for (; counted < match.index; counted += 1) if (source[counted] === '\n') line += 1
    const { block, comment, char, lifetime, number, name } = match.groups
    if (block !== undefined) TOKEN.lastIndex = endOfComment(source, match.index)
    if ([block, comment, char, lifetime, number].some((part) => part !== undefined)) continue
    tokens.push({ text: name?.replace(/^r#/, '') ?? match[0], line, isName: name !== undefined })
  }
  return tokens
}

/** The place behind a block comment, which may hold others. */
function endOfComment(source, start) {
  const mark = /\/\*|\*\//g
  mark.lastIndex = start
  let depth = 0
  for (let match = mark.exec(source); match !== null; match = mark.exec(source)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth === 0) return mark.lastIndex
  }
  return source.length
}
