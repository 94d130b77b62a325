/** The contents of a store and of a session, for people. Other folders import only this file. */
export { chatText } from './chat-text.ts'
export { contentsOf } from './contents.ts'
export type { Contents, ObjectSummary } from './contents.ts'
export { begin, END, sessionParts } from './page.ts'
export { recordedRequest } from './recorded-request.ts'
export type { RebuiltRequest } from './recorded-request.ts'
export { rebuild } from './request.ts'
