/**
 * The extension on a real store, with calls that fail on purpose: FAULT names methods of the class, separated by
 * commas; FAULT_CODE is the code that their errors carry.
 */
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'
import { install } from '../../extension/index.ts'
import { ContextManager, defaultStorePath } from '../../lib/index.ts'

export default function faulty(pi: ExtensionAPI): void {
  const names = (process.env['FAULT'] ?? '').split(',')
  const fail = (name: string) => async () => {
    throw Object.assign(new Error(`${name} fails on purpose`), {
      code: process.env['FAULT_CODE'] ?? 'STORE_UNAVAILABLE',
    })
  }
  install(pi, async () => ({
    defaultStorePath,
    async open(options) {
      if (names.includes('open')) await fail('open')()
      const manager = await ContextManager.open(options)
      return new Proxy(manager, {
        get(target, name) {
          if (names.includes(String(name))) return fail(String(name))
          const value: unknown = Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
  }))
}
