/** Answers of the gateway's own: refusals, and a sentence for a person who has come with a browser. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { wantsHtml } from './access.ts'

/** Headers of all answers to a browser: nothing is stored, framed, guessed or sent on. */
export const COMMON = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
} as const

/** An error in a form that all three APIs' clients show; for a browser that shows documents, a sentence. */
export function refuse(headers: IncomingHttpHeaders, response: ServerResponse, status: number, sentence: string): void {
  if (wantsHtml(headers)) return say(headers, response, status, sentence)
  const message = `pi-context-manager: ${sentence}`
  response.writeHead(status, { ...COMMON, 'content-type': 'application/json' })
  response.end(JSON.stringify({ type: 'error', error: { type: 'gateway_error', message } }))
}

/** A sentence: as a document for a browser, as plain text for others. */
export function say(headers: IncomingHttpHeaders, response: ServerResponse, status: number, sentence: string): void {
  if (!wantsHtml(headers)) {
    response.writeHead(status, { ...COMMON, 'content-type': 'text/plain; charset=utf-8' }).end(`pi-context-manager: ${sentence}\n`)
    return
  }
  const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  response.writeHead(status, { ...COMMON, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
  const text = `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
  response.end(
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>pi-context-manager</title></head><body><h1>pi-context-manager</h1><p>${text}</p></body></html>`,
  )
}
