/** What earlier programs would have written: the same conversation in the formats that they used. */

type Line = Record<string, any>

/** Version 2: a tree as today's, with an older name for an extension's messages, and no system messages. */
export function asVersion2(text: string): string {
  const lines = parse(text).flatMap((line): Line[] => {
    if (line['type'] === 'session') return [{ ...line, version: 2 }]
    return isSystem(line)
      ? [{ ...line, type: 'custom', customType: 'was-system', message: undefined }]
      : [withoutSystem(line)]
  })
  return print(lines)
}

/** Version 1: a list. Only the branch that the session ended on is in it, and entries are named by position. */
export function asVersion1(text: string): string {
  const [header, ...entries] = parse(text) as [Line, ...Line[]]
  const branch = branchOf(entries).filter((line) => !isSystem(line) && line['type'] !== 'branch_summary')
  const place = new Map(branch.map((line, index) => [line['id'], index + 1]))
  const { version: _, ...first } = header
  const rest = branch.map(({ id: _id, parentId: _parent, firstKeptEntryId, ...line }) => ({
    ...withoutSystem(line),
    ...(line['type'] === 'compaction' && { firstKeptEntryIndex: place.get(firstKeptEntryId) ?? 1 }),
  }))
  return print([{ ...first, provider: 'anthropic', modelId: 'scripted', thinkingLevel: 'off' }, ...rest])
}

/** Claude Code: an answer's blocks in lines of their own, other names for tools and arguments, numbered reads. */
export function asClaudeCode(text: string): string {
  const [header, ...entries] = parse(text) as [Line, ...Line[]]
  const calls = new Map<string, Line>()
  const base = {
    isSidechain: false,
    userType: 'external',
    cwd: header['cwd'],
    sessionId: header['id'],
    version: '2.0.0',
    gitBranch: 'main',
  }
  const lines: Line[] = [{ type: 'summary', summary: 'Prices in the shop', leafUuid: 'none' }]
  let parentUuid: string | null = null
  let count = 0
  const add = (line: Line, timestamp: unknown): void => {
    const uuid = `00000000-0000-4000-8000-${String((count += 1)).padStart(12, '0')}`
    lines.push({ parentUuid, ...base, ...line, uuid, timestamp })
    parentUuid = uuid
  }
  for (const entry of branchOf(entries)) {
    const message = entry['message'] as Line | undefined
    if (entry['type'] === 'compaction') {
      const logicalParentUuid = parentUuid
      parentUuid = null
      add(
        { type: 'system', subtype: 'compact_boundary', content: 'Conversation compacted', logicalParentUuid },
        entry['timestamp'],
      )
      const content = `This session is being continued from a previous conversation.\n${entry['summary']}`
      add({ type: 'user', message: { role: 'user', content }, isCompactSummary: true }, entry['timestamp'])
    }
    if (message === undefined || message['role'] === 'system') continue
    if (message['role'] === 'user')
      add({ type: 'user', message: { role: 'user', content: userContent(message) } }, entry['timestamp'])
    if (message['role'] === 'assistant') {
      for (const block of message['content']) {
        if (block['type'] === 'toolCall') calls.set(block['id'], block)
        add({ type: 'assistant', message: answer(entry, message, block) }, entry['timestamp'])
      }
    }
    if (message['role'] === 'toolResult') {
      const call = calls.get(message['toolCallId']) as Line
      const result = {
        type: 'tool_result',
        tool_use_id: message['toolCallId'],
        content: shown(call, message),
        is_error: message['isError'],
      }
      add(
        { type: 'user', message: { role: 'user', content: [result] }, toolUseResult: details(call, message) },
        entry['timestamp'],
      )
    }
  }
  return print(lines)
}

function userContent(message: Line): unknown {
  const text = message['content'].find((block: Line) => block['type'] === 'text')?.text as string
  const images = message['content'].filter((block: Line) => block['type'] === 'image')
  if (images.length === 0) return text
  return [
    { type: 'text', text },
    ...images.map((block: Line) => ({
      type: 'image',
      source: { type: 'base64', media_type: block['mimeType'], data: block['data'] },
    })),
  ]
}

const NAMES: Record<string, string> = {
  read: 'Read',
  write: 'Write',
  edit: 'Edit',
  bash: 'Bash',
  grep: 'Grep',
  ls: 'LS',
}

function answer(entry: Line, message: Line, block: Line): Line {
  const { usage } = message
  return {
    id: `msg_${entry['id']}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-opus-4-5-20251101',
    content: [answerBlock(block)],
    stop_reason: null,
    usage: {
      input_tokens: usage.input,
      output_tokens: usage.output,
      cache_read_input_tokens: usage.cacheRead,
      cache_creation_input_tokens: usage.cacheWrite,
    },
  }
}

function answerBlock(block: Line): Line {
  if (block['type'] === 'text') return block
  if (block['type'] === 'thinking')
    return { type: 'thinking', thinking: block['thinking'], signature: 'c2lnbmF0dXJl' }
  const { path, edits, ...rest } = block['arguments']
  const input: Line =
    block['name'] === 'bash' || block['name'] === 'grep' || block['name'] === 'ls'
      ? block['arguments']
      : { file_path: path, ...rest }
  if (edits !== undefined) Object.assign(input, { old_string: edits[0].oldText, new_string: edits[0].newText })
  return { type: 'tool_use', id: block['id'], name: NAMES[block['name']] ?? block['name'], input }
}

function shown(call: Line, message: Line): string {
  const text = textOf(message)
  if (call['name'] !== 'read') return text
  const start = (call['arguments'].offset as number | undefined) ?? 1
  return linesOf(text)
    .map((line, index) => `${String(start + index).padStart(6)}→${line}`)
    .join('\n')
}

function details(call: Line, message: Line): unknown {
  const text = textOf(message)
  if (call['name'] !== 'read') return { text }
  const content = linesOf(text).join('\n')
  const startLine = (call['arguments'].offset as number | undefined) ?? 1
  const numLines = linesOf(text).length
  const more = /\[(\d+) more lines in file/.exec(text)
  return {
    type: 'text',
    file: {
      filePath: call['arguments'].path,
      content,
      numLines,
      startLine,
      totalLines: startLine - 1 + numLines + Number(more?.[1] ?? 0),
    },
  }
}

function linesOf(text: string): string[] {
  return text.replace(/\n\n\[\d+ more lines in file[^\n]*$/, '').split('\n')
}

function textOf(message: Line): string {
  return message['content'].map((block: Line) => block['text'] ?? '').join('\n')
}

function branchOf(entries: Line[]): Line[] {
  const byId = new Map(entries.map((line) => [line['id'], line]))
  const branch: Line[] = []
  for (let line = entries.at(-1); line !== undefined; line = byId.get(line['parentId'])) branch.unshift(line)
  return branch
}

function isSystem(line: Line): boolean {
  return line['message']?.role === 'system'
}

function withoutSystem(line: Line): Line {
  const { systemMessage: _, ...rest } = line
  return rest
}

function parse(text: string): Line[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

function print(lines: Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}
