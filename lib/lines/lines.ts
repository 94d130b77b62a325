/** Our lines by the addon's grammar. Only the part of a text in which a line may stand crosses the border. */
import type { HeaderLine, HitLine, PoolLine, ReferenceLine } from '../../index.js'
import { sharedAddon } from '../core/index.ts'

/** The reference to an output on the first line of a text, which may have lines of later calls below; undefined for any other text. */
export function referenceOf(text: string): ReferenceLine | undefined {
  return sharedAddon().readReference(firstLine(text)) ?? undefined
}

/** True for a result's text that is the reference to its output, with or without lines of later calls. */
export function isReference(text: string): boolean {
  return referenceOf(text) !== undefined
}

/** The line that points to the output of a call, by the name of its object and its tool alone. */
export function pointerTo(id: string, tool: string): string {
  return sharedAddon().pointerLine(id, tool)
}

/** A host's words that point to an earlier result, with the reference of that result below them. */
export function pointedText(words: string, reference: string): string {
  return sharedAddon().pointedText(words, reference)
}

/** True for a host's words that have such a reference below them. */
export function isPointed(text: string): boolean {
  return sharedAddon().isPointedText(text)
}

/** The header on the first line of a result; undefined for a result without one. */
export function headerOf(text: string): HeaderLine | undefined {
  return sharedAddon().readHeader(firstLine(text)) ?? undefined
}

/** The header of an output, by the name that brings it back. */
export function headerLine(name: string): string {
  return sharedAddon().headerLine(name)
}

/** The first line of an active content, by its object's full ID. */
export function activeHeading(id: string): string {
  return sharedAddon().activeHeading(id)
}

/** A line of the metadata pool; undefined for any other line. */
export function poolLineOf(line: string): PoolLine | undefined {
  return sharedAddon().readPoolLine(line) ?? undefined
}

/** The line of a hit of a search. */
export function hitLine(hit: HitLine): string {
  return sharedAddon().hitLine(hit)
}

/** A hit of a search, its snippet as it is shown; undefined for any other line. */
export function hitOf(line: string): HitLine | undefined {
  return sharedAddon().readHit(line) ?? undefined
}

/** True for a text of a user or the model of which a roll has left the beginning. */
export function isBegun(text: string): boolean {
  return sharedAddon().isBegunText(text.slice(Math.max(0, text.lastIndexOf('\n'))))
}

/** The name of an object in a path such as `id=05f49740` or `id=05f49740@7`; undefined for the path of a file. */
export function nameInPath(path: string): string | undefined {
  return sharedAddon().nameInPath(path) ?? undefined
}

/** The names of objects in a text or in JSON, each once: handles, as headers and references have them. */
export function namesIn(text: string): string[] {
  return sharedAddon().namesInText(text)
}

/** The call that a mark in place of a long argument names; undefined if the text is anything but one mark. */
export function callInMark(text: string): string | undefined {
  return sharedAddon().callInMark(text) ?? undefined
}

/** The first line of a text, with its line break. */
function firstLine(text: string): string {
  const end = text.indexOf('\n')
  return end < 0 ? text : text.slice(0, end + 1)
}
