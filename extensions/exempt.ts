/** Outputs that the settings exempt from collapsing: by tool, or by the file that the call is about. */
import { isAbsolute, relative, resolve, sep } from 'node:path'
import picomatch from 'picomatch'
import type { NeverCollapse } from './settings.ts'

/** Tells whether an output never collapses. */
export type Exempt = (tool: string, args: Record<string, unknown>) => boolean

/**
 * Makes the rule for sessions in `cwd`. A glob without a slash means a file of that name in any folder, as in `.gitignore`;
 * any other one is relative to `cwd`, unless it is absolute.
 */
export function exemptions({ tools = [], files = [] }: NeverCollapse, cwd: string): Exempt {
  const names = new Set(tools)
  const matchers = files.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }))
  return (tool, args) => {
    if (names.has(tool)) return true
    const path = args['path'] ?? args['file_path']
    if (matchers.length === 0 || typeof path !== 'string' || path === '') return false
    const absolute = resolve(cwd, path)
    const inside = relative(cwd, absolute)
    const ways = inside !== '' && !inside.startsWith('..') && !isAbsolute(inside) ? [inside, absolute] : [absolute]
    return ways.some((way) => matchers.some((matches) => matches(way.split(sep).join('/'))))
  }
}
