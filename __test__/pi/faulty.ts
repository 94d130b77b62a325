/**
 * The extension on a real store, with calls that fail on purpose: FAULT names methods of the class, separated by
 * commas; `advance:half` fails after it has recorded the first of its messages. FAULT_CODE is the code that the errors
 * carry, and with FAULT_WHILE they fail only while that file exists.
 */
import { existsSync } from 'node:fs'
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent'
import { install } from '../../extensions/index.ts'
import { ContextManager, defaultStorePath } from '../../lib/index.ts'

export default function faulty(pi: ExtensionAPI): void {
  const names = (process.env['FAULT'] ?? '').split(',')
  const file = process.env['FAULT_WHILE']
  const isOn = (): boolean => file === undefined || existsSync(file)
  const failure = (name: string): Error => Object.assign(new Error(`${name} fails on purpose`), { code: process.env['FAULT_CODE'] ?? 'STORE_UNAVAILABLE' })
  install(pi, async () => ({
    defaultStorePath,
    async open(options) {
      if (names.includes('open') && isOn()) throw failure('open')
      const manager = await ContextManager.open(options)
      return new Proxy(manager, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          const whole = typeof value === 'function' ? value.bind(target) : value
          if (names.includes(String(name)))
            return async (...args: unknown[]) => {
              if (isOn()) throw failure(String(name))
              return whole(...args)
            }
          if (names.includes(`${String(name)}:half`))
            return async (messages: unknown[], ...args: unknown[]) => {
              if (!isOn() || messages.length === 0) return whole(messages, ...args)
              await whole(messages.slice(0, 1), ...args)
              throw failure(String(name))
            }
          return whole
        },
      })
    },
  }))
}
