/**
 * Content that we can neither shorten nor bring back: images, documents, results of tools that the provider runs, texts whose
 * citations it has signed. It stays as it is; only its size is known.
 */
import { isFields, textOf } from '../core/index.ts'
import type { Block, Fields } from '../core/index.ts'

/** The size that an image, or a page in bytes that are no text, counts for: as in Pi, in characters. */
export const IMAGE_CHARACTERS = 4800

/** A block of an answer or a prompt that stays as it is. */
export function opaque(block: Fields, type = textOf(block['type'])): Block {
  return { type, characters: charactersOf(block) }
}

/** A block of a result: the engine keeps a result with an image as it is. */
export function pictured(block: Fields): Block {
  return opaque(block, 'image')
}

/** Characters of the texts in a value. Bytes in base64 count as an image; a text that the provider has encrypted, as it was before. */
function charactersOf(value: unknown, name = ''): number {
  if (typeof value === 'string') {
    if (name.startsWith('encrypted_')) return Math.round(value.length * 0.75)
    return name === 'image_url' || BASE64.test(value) ? IMAGE_CHARACTERS : value.length
  }
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + charactersOf(one, name), 0)
  if (!isFields(value)) return 0
  if (isPicture(value, name)) return IMAGE_CHARACTERS
  const isLink = Object.keys(value).some((one) => LINKS.has(one)) && !('data' in value)
  return Object.entries(value).reduce((sum, [field, one]) => sum + (UNSHOWN.has(field) ? 0 : charactersOf(one, field)), isLink ? IMAGE_CHARACTERS : 0)
}

/** True for the source of an image or of a document that is not text, whether it has the bytes, however few, or only their address. */
function isPicture({ type, mime_type: other, mimeType = other, data }: Fields, name: string): boolean {
  if (name === 'image_url' || type === 'url' || type === 'base64') return true
  return typeof data === 'string' && typeof mimeType === 'string' && !mimeType.startsWith('text/')
}

/** A long text in base64, or a data URL of one. */
const BASE64 = /^(?:data:[^,]{0,200},)?[\w+/=-]{1000}/

/** Fields that name an image or a file elsewhere. */
const LINKS: ReadonlySet<string> = new Set(['file_id', 'fileUri', 'file_uri'])

/** Fields that say what a block is. The model does not read them. */
const UNSHOWN: ReadonlySet<string> = new Set([
  'type',
  'id',
  'tool_use_id',
  'call_id',
  'cache_control',
  'signature',
  'thoughtSignature',
  'thought_signature',
  'status',
  'media_type',
  'mimeType',
  'mime_type',
])
