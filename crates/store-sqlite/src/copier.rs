//! The thread that copies the log back into the database, so that no write waits for it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connect::{self, patiently};
use super::error::Result;
use super::place::Place;
use context_store::StoreError;

/// From this many pages on, the log is copied back and then restarted, because under steady load it is never restarted
/// otherwise. The same number of bytes as SQLite's default. Overwriting a log is synced faster than extending it.
pub(super) const LONG: i64 = 512;

/// A request: copy eventually, or copy now and report.
type Ask = Option<mpsc::Sender<Result<()>>>;

/// The thread, from the moment when there is something to copy.
pub(super) struct Copier {
    place: Arc<Place>,
    running: Option<(SyncSender<Ask>, JoinHandle<()>)>,
}

impl Copier {
    pub fn new(place: Arc<Place>) -> Self {
        Self { place, running: None }
    }

    /// Copies soon. Nobody waits for it, and failures are retried later.
    pub fn nudge(&mut self) {
        match self.start() {
            // If a request is already waiting, it covers this one too.
            Ok(asks) => drop(asks.try_send(None)),
            Err(error) => tracing::warn!(code = %error.into_store().code(), "the log can't be copied back"),
        }
    }

    /// Copies everything that was written before the call.
    ///
    /// # Errors
    /// `STORE_FULL`, `STORE_UNAVAILABLE`.
    pub fn copy(&mut self) -> Result<()> {
        let (reply, answer) = mpsc::channel();
        self.start()?.send(Some(reply)).map_err(|_| stopped())?;
        answer.recv().map_err(|_| stopped())?
    }

    fn start(&mut self) -> Result<&SyncSender<Ask>> {
        let (asks, _) = match self.running.take() {
            Some(running) => self.running.insert(running),
            None => {
                let connection = connect::copier(self.place.path())?;
                // The connection may have opened another file than the one that is being written.
                self.place.check()?;
                let (sender, asks) = mpsc::sync_channel(1);
                let thread = std::thread::Builder::new().name("store-copy".into());
                let thread = thread
                    .spawn(move || work(&connection, &asks))
                    .map_err(|e| StoreError::Unavailable(format!("no thread could be started: {e}")))?;
                self.running.insert((sender, thread))
            }
        };
        Ok(asks)
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        if let Some((asks, thread)) = self.running.take() {
            drop(asks);
            // It has already reported its failures.
            let _ = thread.join();
        }
    }
}

fn work(connection: &Connection, asks: &Receiver<Ask>) {
    let mut limit = LONG;
    while let Ok(ask) = asks.recv() {
        let done = patiently(|| copy(connection, &mut limit));
        match (ask, done) {
            // A caller that has gone away needs no answer.
            (Some(reply), done) => drop(reply.send(done)),
            (None, Err(error)) => {
                tracing::warn!(code = %error.into_store().code(), "the log could not be copied back")
            }
            (None, Ok(())) => {}
        }
    }
}

/// Copies what can be copied. A log of more than `limit` pages is restarted, and `limit` is updated accordingly.
fn copy(connection: &Connection, limit: &mut i64) -> Result<()> {
    let pages = |mode: &str| {
        let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
        statement
            .query_row([], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
    };
    let (_, log, copied) = pages("PASSIVE")?;
    if copied == log {
        *limit = LONG;
    } else if log >= *limit {
        // Nobody can write meanwhile, but only a little is left to copy. If somebody reads an old state, the log grows
        // until that read ends.
        let (is_held, ..) = pages("RESTART")?;
        *limit = if is_held { log + LONG } else { LONG };
    }
    Ok(())
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the thread that copies the log back has stopped; open the store again".into())
}
