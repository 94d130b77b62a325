//! The log: the thread that copies it back into the database, so that no write waits for it, and the gate that holds back
//! reads while it is restarted.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use context_store::StoreError;
use rusqlite::Connection;

use super::connect::{self, patiently};
use super::error::{Result, no_thread};
use super::store_file::StoreFile;

/// From this many pages on, the log is copied back. The same number of bytes as SQLite's default. Once all of it is copied
/// and no connection reads it, the next write restarts it: overwriting a log is synced faster than extending it.
pub(super) const LONG: i64 = 512;

/// A request: copy eventually, or copy now and report.
type Ask = Option<mpsc::Sender<Result<()>>>;

/// The thread, from the moment when there is something to copy.
pub(super) struct Checkpointer {
    place: Arc<StoreFile>,
    running: Option<(SyncSender<Ask>, JoinHandle<()>)>,
    /// Pages that the last pass left, because they were written meanwhile or a connection still reads an older state.
    left: Arc<AtomicI64>,
}

impl Checkpointer {
    pub(crate) fn new(place: Arc<StoreFile>) -> Self {
        Self { place, running: None, left: Arc::default() }
    }

    /// Copies soon. No caller waits for it, and failures are retried later.
    pub(crate) fn nudge(&mut self) {
        match self.start() {
            // If a request is already waiting, it also covers this one.
            Ok(asks) => drop(asks.try_send(None)),
            Err(error) => tracing::warn!(code = %error.into_store().code(), "the log can't be copied back"),
        }
    }

    /// Pages that the last pass left.
    pub(crate) fn left(&self) -> i64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Copies everything that was written before the call.
    pub(crate) fn copy(&mut self) -> Result<()> {
        let (reply, answer) = mpsc::channel();
        self.start()?.send(Some(reply)).map_err(|_| stopped())?;
        answer.recv().map_err(|_| stopped())?
    }

    fn start(&mut self) -> Result<&SyncSender<Ask>> {
        let (asks, _) = match self.running.take() {
            Some(running) => self.running.insert(running),
            None => {
                let connection = connect::checkpointer(self.place.path())?;
                // The connection may have opened another file than the one that is being written.
                self.place.check()?;
                let (sender, asks) = mpsc::sync_channel(1);
                let left = Arc::clone(&self.left);
                let thread = std::thread::Builder::new().name("store-checkpoint".into());
                let thread = thread
                    .spawn(move || work(&connection, &asks, &left))
                    .map_err(|error| no_thread(&error))?;
                self.running.insert((sender, thread))
            }
        };
        Ok(asks)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Some((asks, thread)) = self.running.take() {
            drop(asks);
            // It has already reported its failures.
            let _ = thread.join();
        }
    }
}

fn work(connection: &Connection, asks: &Receiver<Ask>, left: &AtomicI64) {
    while let Ok(ask) = asks.recv() {
        let done = patiently(|| copy(connection)).map(|pages| left.store(pages, Ordering::Relaxed));
        match (ask, done) {
            // A caller that has gone away needs no answer.
            (Some(reply), done) => drop(reply.send(done)),
            (None, Err(error)) => {
                tracing::warn!(code = %error.into_store().code(), "the log could not be copied back");
            }
            (None, Ok(())) => {}
        }
    }
}

/// Copies as much as possible without waiting. Returns the number of pages that are left.
fn copy(connection: &Connection) -> Result<i64> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    Ok(statement.query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))?)
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the thread that copies the log back has stopped; open the store again".into())
}

/// Holds back new reads for a moment. SQLite has four marks for the states that are being read: reads that overlap without end
/// keep all of them in use, and the log can't be restarted.
#[derive(Default)]
pub(super) struct CheckpointGate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl CheckpointGate {
    /// The longest wait of a read.
    const PATIENCE: Duration = Duration::from_millis(200);

    /// Waits until the gate is open.
    pub(crate) fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            // A read that has waited in vain continues; only the log stays longer.
            drop(self.opened.wait_timeout_while(is_closed, Self::PATIENCE, |is_closed| *is_closed));
        }
    }

    /// Runs this while new reads wait.
    pub(crate) fn while_closed<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set(true);
        let value = work();
        self.set(false);
        value
    }

    fn set(&self, closed: bool) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.opened.notify_all();
    }
}
