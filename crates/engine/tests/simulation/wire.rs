//! A tracker that sends the events of the schedule, in the schedule's order: events that wait, come twice, in another order, or
//! are lost until the tracker notices.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use camino::{Utf8Path, Utf8PathBuf};
use context_watch::{Acknowledge, Event, Flush, Sink, Tracked, Tracker, TrackerStatus, WatchError};

use crate::steps::Delivery;

/// The connection between the disk and one client: its tracker's undelivered events.
#[derive(Default)]
pub struct Wire(Mutex<State>);

#[derive(Default)]
struct State {
    sink: Option<Box<dyn Sink>>,
    /// Counts the trackers of this wire, each of which ends the one before.
    number: usize,
    tracked: BTreeSet<Utf8PathBuf>,
    waiting: Vec<Utf8PathBuf>,
    lost: bool,
}

impl Wire {
    pub fn start(self: &Arc<Self>, sink: Box<dyn Sink>) -> Arc<dyn Tracker> {
        let number = self.state().number + 1;
        *self.state() = State { sink: Some(sink), number, ..State::default() };
        Arc::new(Scripted { wire: Arc::clone(self), number })
    }

    /// True if a client has a tracker on it.
    pub fn is_used(&self) -> bool {
        self.state().number > 0
    }

    /// A file has changed: its event is on its way.
    pub fn changed(&self, path: &str) {
        let mut state = self.state();
        if state.tracked.contains(Utf8Path::new(path)) {
            state.waiting.push(path.into());
        }
    }

    /// Delivers events, each on a thread that is none of the runtime's. Returns true if none is on its way any more.
    pub fn deliver(&self, how: Delivery) -> bool {
        let (events, sink) = {
            let mut state = self.state();
            (state.due(how), state.sink.take())
        };
        let Some(mut sink) = sink else { return false };
        std::thread::scope(|scope| {
            let tracker = scope.spawn(|| events.into_iter().for_each(|event| sink.deliver(event)));
            tracker.join().unwrap();
        });
        let mut state = self.state();
        if state.sink.is_none() {
            state.sink = Some(sink);
        }
        state.waiting.is_empty() && !state.lost
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn due(&mut self, how: Delivery) -> Vec<Event> {
        let mut events = Vec::new();
        if how == Delivery::Lost {
            self.lost |= !self.waiting.is_empty();
            self.waiting.clear();
            return events;
        }
        if std::mem::take(&mut self.lost) {
            events.push(Event::Rescan);
        }
        let count = if how == Delivery::One { 1 } else { self.waiting.len() };
        let due = self.waiting.drain(..count.min(self.waiting.len()));
        let due = due.map(|path| Event::Changed(vec![path]));
        match how {
            Delivery::Twice => due.for_each(|event| {
                if let Event::Changed(paths) = &event {
                    events.push(Event::Changed(paths.clone()));
                }
                events.push(event);
            }),
            Delivery::Reversed => events.extend(due.rev()),
            _ => events.extend(due),
        }
        events
    }
}

/// The tracker of one engine.
struct Scripted {
    wire: Arc<Wire>,
    number: usize,
}

impl Tracker for Scripted {
    fn track(&self, path: &Utf8Path) -> Result<Tracked, WatchError> {
        let mut state = self.wire.state();
        if state.number != self.number {
            return Err(WatchError::Closed);
        }
        state.tracked.insert(path.to_owned());
        Ok(Tracked::Watched)
    }

    fn untrack(&self, path: &Utf8Path) {
        self.wire.state().tracked.remove(path);
    }

    fn flush(&self) -> Flush {
        self.wire.deliver(Delivery::All);
        let (flush, done) = Acknowledge::pair();
        done.done();
        flush
    }

    fn status(&self) -> TrackerStatus {
        TrackerStatus { tracked: self.wire.state().tracked.len(), ..TrackerStatus::default() }
    }

    fn close(&self) {
        let mut state = self.wire.state();
        if state.number == self.number {
            state.sink = None;
            state.tracked.clear();
            state.waiting.clear();
        }
    }
}
