/** The files that a host's call is about to change, and the texts that it replaces there. */
import type { Fields } from '../core/index.ts'
import { engineCall } from './tools.ts'

/** A file that a call changes. */
export interface FileChange {
  /** The file, as the host wrote its path. */
  path: string
  /** The texts that the call replaces; undefined if it replaces the whole file, or says nothing of them. */
  oldTexts?: string[]
}

/** The changes that a call would make; none for a tool that changes no file. */
export function changesOf(name: string, args: Fields): FileChange[] {
  const { tool, args: own, writes = [] } = engineCall(name, args)
  if (writes.length === 0) return []
  const patch = own['input']
  if (typeof patch === 'string' && patch.includes('*** Begin Patch')) return patched(patch)
  const oldTexts = tool === 'edit' ? replaced(own) : undefined
  return writes.map((path) => (oldTexts === undefined ? { path } : { path, oldTexts }))
}

/** The texts that an edit replaces; undefined if its arguments have another shape, or it writes a file anew. */
function replaced(args: Fields): string[] | undefined {
  const edits: unknown = args['edits']
  const all: unknown[] = Array.isArray(edits) ? edits : [args]
  const texts = all.map((edit) => (edit as { oldText?: unknown } | null)?.oldText)
  return texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '') ? (texts as string[]) : undefined
}

/** The changes of Codex's patches: of each part of an updated file, the lines that stay and those that leave. */
function patched(patch: string): FileChange[] {
  const changes: FileChange[] = []
  let part: string[] | undefined
  const close = (): void => {
    if (part !== undefined && part.length > 0) changes.at(-1)?.oldTexts?.push(part.join('\n'))
    part = undefined
  }
  for (const line of patch.split('\n')) {
    const file = /^\*\*\* (Add|Update|Delete) File: (.+?)\s*$/.exec(line)
    if (file !== null) {
      close()
      const path = file[2] as string
      changes.push(file[1] === 'Update' ? { path, oldTexts: [] } : { path })
    } else if (line.startsWith('*** ')) close()
    else if (line.startsWith('@@')) {
      close()
      part = []
    } else if (/^[ -]/.test(line)) (part ??= []).push(line.slice(1))
  }
  close()
  return changes.map(({ path, oldTexts }) => (oldTexts === undefined || oldTexts.length === 0 ? { path } : { path, oldTexts }))
}
