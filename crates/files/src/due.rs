//! Which files must be looked at after an event, and when.
//!
//! A log that grows line by line would fill the store if each event made a version. So after each version, a file
//! that nobody looks at rests for as long as its bytes take at a given pace, and twice as long each time it changes
//! again before that. Nothing is forgotten meanwhile: the file stays due, even if a look or its write failed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// The longest rest of a file that nobody looks at.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// The first rest after a look or its write failed.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The files that wait, and those that rest.
#[derive(Default)]
pub struct Due {
    files: HashMap<Utf8PathBuf, Wait>,
    /// Events were lost, so every tracked file must be compared.
    rescan: bool,
}

/// A file that is waiting to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRead {
    /// Where the file is on disk.
    pub path: Utf8PathBuf,
    touches: u64,
}

struct Wait {
    /// Events that no look has answered yet.
    touches: u64,
    /// No look before this moment, unless somebody asks for one.
    not_before: Instant,
    rest: Duration,
    /// It changed again while it rested.
    is_busy: bool,
}

impl Due {
    /// An event of a file.
    pub fn touch(&mut self, path: &Utf8Path, now: Instant) {
        let wait = self.files.entry(path.to_owned()).or_insert(Wait {
            touches: 0,
            not_before: now,
            rest: Duration::ZERO,
            is_busy: false,
        });
        wait.touches += 1;
        wait.is_busy |= now < wait.not_before;
    }

    /// Events were lost.
    pub fn touch_all(&mut self) {
        self.rescan = true;
    }

    /// Returns whether every tracked file must be compared. Asking resets this: the caller takes over the task.
    pub fn take_rescan(&mut self) -> bool {
        std::mem::take(&mut self.rescan)
    }

    /// The waiting files that may be looked at now; with `all`, resting files too.
    pub fn ready(&self, now: Instant, all: bool) -> Vec<PendingRead> {
        let waiting =
            self.files.iter().filter(|(_, wait)| wait.touches > 0 && (all || wait.not_before <= now));
        let mut ready: Vec<PendingRead> =
            waiting.map(|(path, wait)| PendingRead { path: path.clone(), touches: wait.touches }).collect();
        ready.sort_by(|a, b| a.path.cmp(&b.path));
        ready
    }

    /// When the next resting file may be looked at.
    pub fn next(&self) -> Option<Instant> {
        self.files.values().filter(|wait| wait.touches > 0).map(|wait| wait.not_before).min()
    }

    /// A file was looked at and the result is stored. `rest` is how long its bytes take at the pace.
    pub fn looked(&mut self, read: &PendingRead, made_version: bool, rest: Duration, now: Instant) {
        let Some(wait) = self.files.get_mut(&read.path) else { return };
        wait.touches -= read.touches.min(wait.touches);
        if made_version {
            wait.rest = if wait.is_busy { wait.rest * 2 } else { rest }.min(LONGEST_REST);
            wait.not_before = now + wait.rest;
            wait.is_busy = wait.touches > 0;
        }
        if wait.touches == 0 && wait.not_before <= now {
            self.files.remove(&read.path);
        }
    }

    /// A look or its write failed: the file keeps waiting.
    pub fn failed(&mut self, read: &PendingRead, now: Instant) {
        if let Some(wait) = self.files.get_mut(&read.path) {
            wait.rest = (wait.rest * 2).clamp(FIRST_RETRY, LONGEST_REST);
            wait.not_before = now + wait.rest;
        }
    }

    /// The session has looked at a file itself: it neither waits nor rests.
    pub fn seen(&mut self, path: &Utf8Path) {
        self.files.remove(path);
    }

    /// Forgets the rests that are over, so that files that changed once are not kept forever.
    pub fn tidy(&mut self, now: Instant) {
        self.files.retain(|_, wait| wait.touches > 0 || wait.not_before > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/log";
    const MS: Duration = Duration::from_millis(1);

    /// Versions of a file that is touched every 100 ms for a minute, and whose bytes take `rest`.
    fn versions(rest: Duration) -> usize {
        let (mut due, start) = (Due::default(), Instant::now());
        let mut made = 0;
        for step in 0..600 {
            let now = start + MS * 100 * step;
            due.touch(PATH.into(), now);
            for read in due.ready(now, false) {
                due.looked(&read, true, rest, now);
                made += 1;
            }
        }
        made
    }

    #[test]
    fn a_file_that_goes_on_changing_has_fewer_and_fewer_versions() {
        assert_eq!(versions(Duration::ZERO), 600);
        assert_eq!(versions(MS * 100 * 8), 7);
        assert_eq!(versions(Duration::from_secs(8)), 4);
    }

    #[test]
    fn a_file_that_pauses_longer_than_it_rests_has_each_version() {
        let (mut due, start) = (Due::default(), Instant::now());
        for step in 0..10 {
            let now = start + Duration::from_secs(10) * step;
            due.touch(PATH.into(), now);
            let ready = due.ready(now, false);
            assert_eq!(ready.len(), 1);
            due.looked(&ready[0], true, Duration::from_secs(8), now);
        }
    }

    #[test]
    fn what_failed_goes_on_waiting() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let ready = due.ready(now, false);
        due.failed(&ready[0], now);
        assert!(due.ready(now, false).is_empty());
        assert_eq!(due.ready(now, true), ready);
        assert_eq!(due.next(), Some(now + FIRST_RETRY));
        assert_eq!(due.ready(now + FIRST_RETRY, false), ready);
        due.failed(&ready[0], now);
        assert_eq!(due.next(), Some(now + FIRST_RETRY * 2));
        due.seen(PATH.into());
        assert!(due.next().is_none());
    }

    #[test]
    fn a_rest_is_kept_until_it_is_over() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let ready = due.ready(now, false);
        due.looked(&ready[0], true, MS, now);
        due.tidy(now);
        assert_eq!(due.files.len(), 1);
        due.tidy(now + MS);
        assert!(due.files.is_empty());
    }

    #[test]
    fn an_event_during_a_look_asks_for_another_one() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let first = due.ready(now, false).remove(0);
        due.touch(PATH.into(), now);
        due.looked(&first, true, MS, now);
        assert!(due.next().is_some());
        assert!(due.ready(now, false).is_empty());
        let second = due.ready(now + MS, false).remove(0);
        due.looked(&second, false, MS, now + MS);
        due.tidy(now + MS);
        assert!(due.files.is_empty());
    }

    #[test]
    fn a_file_that_was_looked_at_waits_for_nothing() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let ready = due.ready(now, false);
        due.looked(&ready[0], true, MS, now);
        assert_eq!(due.ready(now + MS, true), []);
        assert_eq!(due.next(), None);
    }

    #[test]
    fn a_file_that_changes_while_it_is_looked_at_rests_twice_as_long_the_next_time() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let first = due.ready(now, false).remove(0);
        due.touch(PATH.into(), now);
        due.looked(&first, true, MS, now);
        let second = due.ready(now + MS, false).remove(0);
        due.looked(&second, true, MS, now + MS);
        due.touch(PATH.into(), now + MS * 3);
        assert_eq!(due.next(), Some(now + MS * 3));
    }

    #[test]
    fn a_look_that_made_no_version_takes_no_later_event() {
        let (mut due, now) = (Due::default(), Instant::now());
        due.touch(PATH.into(), now);
        let first = due.ready(now, false).remove(0);
        due.touch(PATH.into(), now);
        due.looked(&first, false, MS, now);
        due.tidy(now);
        assert_eq!(due.ready(now, false), [PendingRead { path: PATH.into(), touches: 1 }]);
    }
}
