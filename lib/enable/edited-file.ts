/**
 * A file of the user's that lines are added to and taken from. Its other bytes stay as they are; what can't be edited safely
 * stays untouched, with a sentence that says why.
 */
import { closeSync, lstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { reasonOf } from '../ui/index.ts'

/** A file that stays untouched. The message is a sentence for the user, without the file's name. */
export class Untouched extends Error {}

/** A file as it was read. Texts are bytes, one for each character, so that any encoding stays as it is. */
export interface FileBefore {
  path: string
  /** Undefined if the file does not exist. */
  text: string | undefined
  mode: number
}

/** Reads a file that is to be edited. Throws {@link Untouched}. */
export function readForEdit(path: string): FileBefore {
  let found
  try {
    found = lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new Untouched(`it can't be looked at (${reasonOf(error)})`)
  }
  if (found === undefined) return { path, text: undefined, mode: 0o600 }
  if (found.isSymbolicLink()) throw new Untouched('it is a symbolic link, and what it leads to may be shared or kept elsewhere')
  if (!found.isFile()) throw new Untouched('it is not a file')
  if ((found.mode & 0o200) === 0) throw new Untouched('it is read-only')
  try {
    return { path, text: readFileSync(path, 'latin1'), mode: found.mode & 0o7777 }
  } catch (error) {
    throw new Untouched(`it can't be read (${reasonOf(error)})`)
  }
}

/**
 * Replaces a file's text, all at once; undefined removes the file. Throws {@link Untouched} if it is not what it was when it was
 * read, or can't be written.
 */
export function replaceText({ path, text: before, mode }: FileBefore, text: string | undefined): void {
  const unfinished = join(dirname(path), `.${basename(path)}.${process.pid}-${randomBytes(8).toString('hex')}.part`)
  try {
    if (text !== undefined) writeNew(unfinished, text, mode)
    if (readForEdit(path).text !== before) throw new Untouched('it has changed in the meantime; try again')
    if (text === undefined) rmSync(path, { force: true })
    else renameSync(unfinished, path)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error instanceof Untouched ? error : new Untouched(`it can't be written (${reasonOf(error)})`)
  }
}

/** The most backups of one file. */
const MOST_BACKUPS = 100

/** The names of a file's backups, the first one first. */
function backupPaths(path: string): string[] {
  return Array.from({ length: MOST_BACKUPS }, (_, at) => `${path}.before-pi-context-manager${at === 0 ? '' : `-${at + 1}`}`)
}

/** Keeps a copy beside a file, which only its user can read. Returns its path; none for a file that is not there. */
export function backUp({ path, text }: FileBefore): string | undefined {
  if (text === undefined) return undefined
  for (const copy of backupPaths(path)) {
    try {
      writeNew(copy, text, 0o600)
      return copy
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw new Untouched(`there can be no backup beside it (${reasonOf(error)})`)
      if (isCopy(copy, text)) return copy
    }
  }
  throw new Untouched(`there are ${MOST_BACKUPS} backups beside it; remove them first`)
}

/** Removes the backups that say no more than the file itself. */
export function dropBackups(path: string, text: string): void {
  for (const copy of backupPaths(path)) {
    if (lstatSync(copy, { throwIfNoEntry: false }) === undefined) return
    if (isCopy(copy, text)) rmSync(copy, { force: true })
  }
}

function isCopy(copy: string, text: string): boolean {
  const found = lstatSync(copy, { throwIfNoEntry: false })
  return found?.isFile() === true && readFileSync(copy, 'latin1') === text
}

/** Writes a new file. Throws the system's error; `EEXIST` if there is anything of this name. */
function writeNew(path: string, text: string, mode: number): void {
  const file = openSync(path, 'wx', mode)
  try {
    writeFileSync(file, text, 'latin1')
  } finally {
    closeSync(file)
  }
}
