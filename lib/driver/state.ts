/** How far the engine knows a conversation: the states of a driver, and what leads from one to another. */

/** The state of a driver. */
export type State =
  /** Nothing of the branch that the host is on has been read: it is loaded as of its last point. */
  | { is: 'unread' }
  /** The engine may differ from what the host shows: all of it is read again. */
  | { is: 'doubtful' }
  /** A hand-over began and has not ended. What it recorded since the transaction `before` is taken back before the next. */
  | { is: 'underway'; before: number }
  /** The engine knows everything that the host had shown at the last hand-over. */
  | { is: 'agreed' }

/** What happens to a driver. */
export type Event =
  /** The host has gone to another branch. */
  | { is: 'moved' }
  /** Something may have been missed. */
  | { is: 'doubted' }
  /** A hand-over begins at the transaction `before`. */
  | { is: 'begun'; before: number }
  /** The engine has accepted a hand-over. */
  | { is: 'accepted' }
  /** What a broken-off hand-over had recorded has been taken back. */
  | { is: 'taken back' }

/** The state after an event. */
export function after(state: State, event: Event): State {
  switch (event.is) {
    case 'moved':
      // A point of the branch is restored, and with it everything before a broken-off hand-over.
      return { is: 'unread' }
    case 'doubted':
      return state.is === 'agreed' ? { is: 'doubtful' } : state
    case 'begun':
      return { is: 'underway', before: event.before }
    case 'accepted':
      return { is: 'agreed' }
    case 'taken back':
      return state.is === 'underway' ? { is: 'doubtful' } : state
  }
}
