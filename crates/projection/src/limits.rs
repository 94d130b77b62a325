//! The bounds of what rolls may cost, and of what text must have paid before it leaves.

/// The share of what the client's own requests would have cost that rolls may have cost more than they have saved so far. It
/// bounds how far a session can fall behind one in which nothing ever leaves.
pub const DEBT_CAP: f64 = 0.03;

/// The cost of rolls beyond that share that is allowed, in fresh input tokens: the first rolls of a session come before it has spent
/// much.
pub const SLACK: f64 = 5_000.0;

/// The same on models that bind reasoning, with a cache of an hour: there, text waits for the user, and a roll saves so much
/// that waiting costs more.
pub const LONG_SLACK: f64 = 20_000.0;

/// The number of times its price that the text of a roll must have paid. At equal misses everything from one to three costs the same;
/// two is the least that keeps short sessions from rolls that they don't earn back.
pub const TIMES: f64 = 2.0;

/// The same in the middle of a turn: there, a roll is judged by fewer calls, and a user who speaks after a pause may make it free.
pub const TIMES_IN_TURN: f64 = 3.0;
