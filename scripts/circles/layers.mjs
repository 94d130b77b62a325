/** Names of the engine's layers in layers below them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Each knows the ones before it, and none after it. */
const LAYERS = ['base', 'session', 'files', 'view', 'engine']

const NAME = new RegExp(`\\b(?:crate|super)::(${LAYERS.join('|')})\\b`, 'g')

/**
 * Lines of a crate's sources, unit tests left out, that name a layer above their own.
 *
 * @param {string} folder The crate's `src`.
 * @returns {{ files: number, wrong: { file: string, line: number, layer: string }[] }}
 */
export function upwardNames(folder) {
  const wrong = []
  let files = 0
  for (const [index, layer] of LAYERS.entries()) {
    for (const name of readdirSync(join(folder, layer), { recursive: true }).sort()) {
      if (!/(?<!_tests)\.rs$/.test(name)) continue
      files += 1
      const file = join(folder, layer, name)
      for (const [at, text] of withoutTests(readFileSync(file, 'utf8')).split('\n').entries()) {
        for (const [, named] of text.replace(/\/\/.*/, '').matchAll(NAME)) {
          if (LAYERS.indexOf(named) > index) wrong.push({ file, line: at + 1, layer: named })
        }
      }
    }
  }
  return { files, wrong }
}

/** A file's unit tests are a module at its end. */
function withoutTests(source) {
  return source.split(/^#\[cfg\(test\)\]\nmod \w+ \{/m, 1)[0]
}
