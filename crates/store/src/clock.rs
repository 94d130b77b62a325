//! The source of transaction times.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use context_model::time::Timestamp;

/// Returns the current time. A store never relies on it to move forward.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The machine's wall clock.
#[must_use]
pub fn system() -> Clock {
    Arc::new(|| {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |m| -m),
        };
        Timestamp::from_millis(millis)
    })
}

/// The time of the transaction after one at `last`: the clock's, but never earlier than the last one.
///
/// Several transactions may share a millisecond; their numbers tell them apart. Running ahead of the clock to keep times
/// apart would hide the newest versions from a query for the present moment.
pub fn next(clock: &Clock, last: Option<Timestamp>) -> Timestamp {
    let now = clock();
    last.map_or(now, |last| now.max(last))
}
