//! Files that must be read after an event, and the times of these reads.
//!
//! A log that grows line by line would fill the store if each event made a version. So after each version, a file that no
//! client reads is throttled for as long as its bytes take at a given pace, and for twice as long each time it changes again
//! before that. Nothing is forgotten meanwhile: the read stays pending, even if it or its write failed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// The longest time for which a file that no client reads is throttled.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The time for which a file is throttled after a read or its write first failed.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The files that wait to be read, and those that are throttled.
#[derive(Default)]
pub(crate) struct PendingReads {
    files: HashMap<Utf8PathBuf, Wait>,
    /// The number of events so far. A look answers the events that were heard before it, and no later one.
    heard: u64,
    /// Events were lost, so every tracked file must be compared.
    rescan: bool,
}

/// A file that is waiting to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingRead {
    /// The path of the file on disk.
    pub path: Utf8PathBuf,
    heard: u64,
}

struct Wait {
    /// The number of its newest event.
    touched: u64,
    /// The number of events that its looks have answered.
    answered: u64,
    /// The earliest moment of the next read, unless a client asks for one.
    not_before: Instant,
    pause: Duration,
    /// It changed again while it was throttled.
    is_busy: bool,
}

impl PendingReads {
    /// An event of a file.
    pub(crate) fn touch(&mut self, path: &Utf8Path, now: Instant) {
        self.heard += 1;
        let wait = self.files.entry(path.to_owned()).or_insert(Wait {
            touched: 0,
            answered: 0,
            not_before: now,
            pause: Duration::ZERO,
            is_busy: false,
        });
        wait.touched = self.heard;
        wait.is_busy |= now < wait.not_before;
    }

    /// Events were lost.
    pub(crate) fn touch_all(&mut self) {
        self.rescan = true;
    }

    /// True if every tracked file must be compared. Asking resets this: the caller takes over the task.
    pub(crate) fn take_rescan(&mut self) -> bool {
        std::mem::take(&mut self.rescan)
    }

    /// Returns the number of events so far, for [`PendingReads::seen`].
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// Returns the waiting files that may be read now; with `all`, also the throttled ones.
    pub(crate) fn ready(&self, now: Instant, all: bool) -> Vec<PendingRead> {
        let waiting =
            self.files.iter().filter(|(_, wait)| wait.is_waiting() && (all || wait.not_before <= now));
        let mut ready: Vec<PendingRead> =
            waiting.map(|(path, _)| PendingRead { path: path.clone(), heard: self.heard }).collect();
        ready.sort_by(|a, b| a.path.cmp(&b.path));
        ready
    }

    /// Returns the time at which the next throttled file may be read.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.files.values().filter(|wait| wait.is_waiting()).map(|wait| wait.not_before).min()
    }

    /// A file was read and the result is stored. `pause` is the time that its bytes take at the pace.
    pub(crate) fn was_read(&mut self, read: &PendingRead, made_version: bool, pause: Duration, now: Instant) {
        let Some(wait) = self.files.get_mut(&read.path) else { return };
        wait.answered = wait.answered.max(read.heard);
        if made_version {
            wait.pause = if wait.is_busy { wait.pause * 2 } else { pause }.min(LONGEST_PAUSE);
            wait.not_before = now + wait.pause;
            wait.is_busy = wait.is_waiting();
        }
        if !wait.is_waiting() && wait.not_before <= now {
            self.files.remove(&read.path);
        }
    }

    /// A read or its write failed: the file keeps waiting.
    pub(crate) fn failed(&mut self, read: &PendingRead, now: Instant) {
        if let Some(wait) = self.files.get_mut(&read.path) {
            wait.pause = (wait.pause * 2).clamp(FIRST_RETRY, LONGEST_PAUSE);
            wait.not_before = now + wait.pause;
        }
    }

    /// The session has looked at a file itself, after `heard` events: unless one came later, it neither waits nor is throttled.
    pub(crate) fn seen(&mut self, path: &Utf8Path, heard: u64) {
        let Some(wait) = self.files.get_mut(path) else { return };
        wait.answered = wait.answered.max(heard);
        if !wait.is_waiting() {
            self.files.remove(path);
        }
    }

    /// Forgets the pauses that are over, so that files that changed once are not kept forever.
    pub(crate) fn tidy(&mut self, now: Instant) {
        self.files.retain(|_, wait| wait.is_waiting() || wait.not_before > now);
    }
}

impl Wait {
    fn is_waiting(&self) -> bool {
        self.touched > self.answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/log";
    const MS: Duration = Duration::from_millis(1);

    /// Versions of a file that is touched every 100 ms for a minute, and whose bytes take `pause`.
    fn versions(pause: Duration) -> usize {
        let (mut pending, start) = (PendingReads::default(), Instant::now());
        let mut made = 0;
        for step in 0..600 {
            let now = start + MS * 100 * step;
            pending.touch(PATH.into(), now);
            for read in pending.ready(now, false) {
                pending.was_read(&read, true, pause, now);
                made += 1;
            }
        }
        made
    }

    #[test]
    fn changing_file_gets_fewer_and_fewer_versions() {
        assert_eq!(versions(Duration::ZERO), 600);
        assert_eq!(versions(MS * 100 * 8), 7);
        assert_eq!(versions(Duration::from_secs(8)), 4);
    }

    #[test]
    fn file_that_changes_more_slowly_than_its_pace_has_each_version() {
        let (mut pending, start) = (PendingReads::default(), Instant::now());
        for step in 0..10 {
            let now = start + Duration::from_secs(10) * step;
            pending.touch(PATH.into(), now);
            let ready = pending.ready(now, false);
            assert_eq!(ready.len(), 1);
            pending.was_read(&ready[0], true, Duration::from_secs(8), now);
        }
    }

    #[test]
    fn failed_read_stays_pending() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let ready = pending.ready(now, false);
        pending.failed(&ready[0], now);
        assert!(pending.ready(now, false).is_empty());
        assert_eq!(pending.ready(now, true), ready);
        assert_eq!(pending.next(), Some(now + FIRST_RETRY));
        assert_eq!(pending.ready(now + FIRST_RETRY, false), ready);
        pending.failed(&ready[0], now);
        assert_eq!(pending.next(), Some(now + FIRST_RETRY * 2));
        pending.seen(PATH.into(), pending.heard());
        assert!(pending.next().is_none());
    }

    #[test]
    fn throttling_lasts_until_it_is_over() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let ready = pending.ready(now, false);
        pending.was_read(&ready[0], true, MS, now);
        pending.tidy(now);
        assert_eq!(pending.files.len(), 1);
        pending.tidy(now + MS);
        assert!(pending.files.is_empty());
    }

    #[test]
    fn event_during_a_read_asks_for_another_one() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let first = pending.ready(now, false).remove(0);
        pending.touch(PATH.into(), now);
        pending.was_read(&first, true, MS, now);
        assert!(pending.next().is_some());
        assert!(pending.ready(now, false).is_empty());
        let second = pending.ready(now + MS, false).remove(0);
        pending.was_read(&second, false, MS, now + MS);
        pending.tidy(now + MS);
        assert!(pending.files.is_empty());
    }

    #[test]
    fn file_that_was_read_is_not_pending() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let ready = pending.ready(now, false);
        pending.was_read(&ready[0], true, MS, now);
        assert_eq!(pending.ready(now + MS, true), []);
        assert_eq!(pending.next(), None);
    }

    #[test]
    fn change_during_a_read_doubles_the_next_pause() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let first = pending.ready(now, false).remove(0);
        pending.touch(PATH.into(), now);
        pending.was_read(&first, true, MS, now);
        let second = pending.ready(now + MS, false).remove(0);
        pending.was_read(&second, true, MS, now + MS);
        pending.touch(PATH.into(), now + MS * 3);
        assert_eq!(pending.next(), Some(now + MS * 3));
    }

    #[test]
    fn read_that_made_no_version_takes_no_later_event() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let first = pending.ready(now, false).remove(0);
        pending.touch(PATH.into(), now);
        pending.was_read(&first, false, MS, now);
        pending.tidy(now);
        assert_eq!(pending.ready(now, false), [PendingRead { path: PATH.into(), heard: 2 }]);
    }

    /// The tracker's thread and a call may read a file for the same event, and the later one ends after another event.
    #[test]
    fn second_read_of_an_event_takes_no_later_one() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let [first, second] = [(), ()].map(|()| pending.ready(now, true).remove(0));
        pending.was_read(&first, true, Duration::ZERO, now);
        pending.touch(PATH.into(), now);
        pending.was_read(&second, true, Duration::ZERO, now);
        assert_eq!(pending.ready(now, true).len(), 1);
    }

    #[test]
    fn look_of_the_session_takes_no_event_that_came_after_it() {
        let (mut pending, now) = (PendingReads::default(), Instant::now());
        pending.touch(PATH.into(), now);
        let heard = pending.heard();
        pending.touch(PATH.into(), now);
        pending.seen(PATH.into(), heard);
        assert_eq!(pending.ready(now, true).len(), 1);
        pending.seen(PATH.into(), pending.heard());
        assert_eq!(pending.ready(now, true), []);
    }
}
