//! The events that an inbox keeps, and the moment at which it gives them.

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn path(number: usize) -> Utf8PathBuf {
    format!("/d/{number}").into()
}

#[test]
fn changes_are_merged_and_taken_once() {
    let inbox = Inbox::new(10, LONG);
    for number in [1, 2, 1, 2, 1] {
        inbox.changed(&path(number), Urgency::Now);
    }
    let batch = inbox.take().unwrap();
    assert_eq!(batch.changed, HashSet::from([path(1), path(2)]));
    inbox.warn("next".into());
    assert!(inbox.take().unwrap().changed.is_empty());
}

#[test]
fn a_settling_change_waits_until_it_is_urgent_or_a_flush_asks() {
    let inbox = Inbox::new(10, LONG);
    inbox.changed(&path(1), Urgency::Settle);
    inbox.changed(&path(2), Urgency::Settle);
    inbox.changed(&path(1), Urgency::Now);
    assert_eq!(inbox.take().unwrap().changed, HashSet::from([path(1)]));
    let (flush, ack) = Acknowledge::pair();
    inbox.await_marker(7, ack);
    inbox.marker(7);
    let batch = inbox.take().unwrap();
    assert_eq!(batch.changed, HashSet::from([path(2)]));
    drop(batch);
    assert_eq!(flush.wait(), Ok(()));
}

#[test]
fn a_settling_change_is_taken_when_its_time_is_over() {
    let inbox = Inbox::new(10, Duration::from_millis(1));
    inbox.changed(&path(1), Urgency::Settle);
    assert_eq!(inbox.take().unwrap().changed, HashSet::from([path(1)]));
}

#[test]
fn more_than_the_capacity_becomes_one_rescan() {
    let inbox = Inbox::new(3, LONG);
    for number in 0..3 {
        inbox.changed(&path(number), if number == 0 { Urgency::Settle } else { Urgency::Now });
    }
    assert_eq!(inbox.rescans(), 0);
    for number in 3..9 {
        inbox.changed(&path(number), Urgency::Now);
    }
    let batch = inbox.take().unwrap();
    assert!(batch.rescan && batch.changed.is_empty() && !batch.lost);
    assert_eq!(inbox.rescans(), 1);
    inbox.changed(&path(1), Urgency::Now);
    assert_eq!(inbox.take().unwrap().changed.len(), 1);
}

#[test]
fn an_overflow_answers_waiting_flushes_with_the_rescan() {
    let inbox = Inbox::new(3, LONG);
    let (flush, ack) = Acknowledge::pair();
    inbox.await_marker(1, ack);
    inbox.overflowed();
    let batch = inbox.take().unwrap();
    assert!(batch.rescan && batch.lost);
    assert_eq!(batch.flushes.len(), 1);
    assert_eq!(flush.wait_timeout(Duration::ZERO), None);
}

#[test]
fn a_missing_marker_counts_as_an_overflow_where_the_system_reports_none() {
    let inbox = Inbox { patience: Some(Duration::from_millis(1)), ..Inbox::new(3, LONG) };
    let (_flush, ack) = Acknowledge::pair();
    inbox.await_marker(1, ack);
    let batch = inbox.take().unwrap();
    assert!(batch.rescan && batch.lost);
    assert_eq!((batch.flushes.len(), inbox.rescans()), (1, 1));
}

#[test]
fn the_strongest_cause_counts() {
    let inbox = Inbox::new(3, LONG);
    for cause in [Cause::Touched, Cause::Lost, Cause::Check] {
        inbox.directory(Utf8Path::new("/d"), cause);
    }
    assert_eq!(inbox.take().unwrap().directories[Utf8Path::new("/d")], Cause::Lost);
}

#[test]
fn closing_ends_the_taker_and_the_flushes() {
    let inbox = Inbox::new(3, LONG);
    let (first, ack) = Acknowledge::pair();
    inbox.await_marker(1, ack);
    inbox.close();
    assert!(inbox.take().is_none());
    let (second, ack) = Acknowledge::pair();
    inbox.await_marker(2, ack);
    assert_eq!((first.wait(), second.wait()), (Err(WatchError::Closed), Err(WatchError::Closed)));
}
