//! The connections that read, each used by one caller at a time, the threads for long reads, and when a read must end: at its
//! time limit, or when the store is closed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use context_store::{Result, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::checkpointer::CheckpointGate;
use super::connect;
use super::error::{self, Trouble, is_held, is_interrupted, no_thread};
use super::store_file::StoreFile;
use super::viewed_file::{ViewState, ViewedFile};

/// Threads for long reads.
const THREADS: usize = 2;

/// Number of times that a view reads a file that changes meanwhile.
const LOOKS: usize = 5;

type ReaderJob = Box<dyn FnOnce() + Send>;

/// Reading connections and threads; the connections are opened when they are first needed.
pub(super) struct Pool {
    idle: Arc<Idle>,
    jobs: RwLock<Option<Sender<ReaderJob>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The file that a pool reads.
pub(super) enum Readable {
    /// The file of a store that this process writes.
    Store { place: Arc<StoreFile>, gate: Arc<CheckpointGate> },
    /// A file that is only read.
    View(Arc<ViewedFile>),
}

struct Idle {
    readable: Readable,
    is_closed: Arc<AtomicBool>,
    connections: Mutex<Vec<PooledConnection>>,
}

/// A connection, when its reads end, and how it was opened if it is one of a view.
struct PooledConnection {
    connection: Connection,
    limit: Limit,
    state: Option<ViewState>,
}

impl Pool {
    /// Starts the threads.
    pub(crate) fn new(readable: Readable, name: &str) -> Result<Self> {
        let (sender, receiver) = mpsc::channel::<ReaderJob>();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let receiver = Arc::clone(&receiver);
            let spawned = std::thread::Builder::new().name(name.into()).spawn(move || work(&receiver));
            threads.push(spawned.map_err(|error| no_thread(&error))?);
        }
        Ok(Self {
            idle: Arc::new(Idle { readable, is_closed: Arc::default(), connections: Mutex::default() }),
            jobs: RwLock::new(Some(sender)),
            threads: Mutex::new(threads),
        })
    }

    /// A short read, on the caller's own thread: reading a row from memory takes less time than waking another thread.
    pub(crate) fn here<T>(&self, read: impl Fn(&Connection) -> error::Result<T>) -> Result<T> {
        // Held until the read has finished, so that closing waits for it: a connection that is left open keeps the log.
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            return Err(StoreError::Closed);
        }
        self.idle.with(None, |connection, _| read(connection))
    }

    /// A read that may take long, on a thread of the pool.
    pub(crate) async fn away<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(None, move |connection, _| read(connection)).await
    }

    /// The same with a time limit, which the read must also check between its statements.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` at the limit, and those of the read.
    pub(crate) async fn within<T: Send + 'static>(
        &self,
        time: Duration,
        read: impl Fn(&Connection, &Limit) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(Some(time), read).await
    }

    async fn run<T: Send + 'static>(
        &self,
        time: Option<Duration>,
        read: impl Fn(&Connection, &Limit) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let idle = Arc::clone(&self.idle);
        {
            let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
            let job: ReaderJob = Box::new(move || {
                // A caller that has gone away needs no answer.
                if !reply.is_closed() {
                    let _ = reply.send(idle.with(time, read));
                }
            });
            jobs.as_ref().ok_or(StoreError::Closed)?.send(job).map_err(|_| StoreError::Closed)?;
        }
        answer
            .await
            .map_err(|_| StoreError::Unavailable("a read ended without an answer; repeat it".into()))?
    }

    /// Ends running reads with `CLOSED`, and then the threads and connections.
    pub(crate) fn close(&self) {
        self.idle.is_closed.store(true, Ordering::Relaxed);
        drop(self.jobs.write().unwrap_or_else(PoisonError::into_inner).take());
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
        self.idle.end();
    }
}

impl Idle {
    fn with<T>(
        &self,
        time: Option<Duration>,
        read: impl Fn(&Connection, &Limit) -> error::Result<T>,
    ) -> Result<T> {
        let file = match &self.readable {
            Readable::Store { gate, .. } => {
                gate.pass();
                let reader = self.pop(None).map_or_else(|| self.open(None), Ok)?;
                return self.run(reader, time, &read);
            }
            Readable::View(file) => file,
        };
        // A read of a file that has changed meanwhile is repeated; its writer's log is there by then.
        for _ in 0..LOOKS {
            let looked = file.look()?;
            let reader = self.pop(Some(&looked)).map_or_else(|| self.open(Some(looked.clone())), Ok);
            let (state, result) = match reader {
                Ok(reader) => (reader.state.clone(), self.run(reader, time, &read)),
                Err(error) => (Some(looked), Err(error)),
            };
            if state.is_some_and(|state| file.is_as(&state)) {
                return result;
            }
        }
        Err(StoreError::Unavailable(format!(
            "{} can only be read, and is being written by another process; try again when that has ended",
            file.path().display()
        )))
    }

    /// An idle connection that was opened like this.
    fn pop(&self, state: Option<&ViewState>) -> Option<PooledConnection> {
        let mut idle = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of an earlier state of a viewed file are of no use any more.
        idle.retain(|one| one.state.as_ref() == state);
        idle.pop()
    }

    fn run<T>(
        &self,
        reader: PooledConnection,
        time: Option<Duration>,
        read: &impl Fn(&Connection, &Limit) -> error::Result<T>,
    ) -> Result<T> {
        let PooledConnection { connection, limit, .. } = &reader;
        limit.begin(time);
        let start = Instant::now();
        let attempt = || limit.check().and_then(|()| Ok(read(connection, limit)?));
        let mut result = attempt();
        while result.as_ref().is_err_and(is_held) && start.elapsed() < connect::PATIENCE {
            result = attempt();
        }
        if result.as_ref().is_err_and(is_interrupted) {
            limit.check()?;
        }
        let mut idle = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that saw damage is discarded, so that a repaired file is read again.
        if idle.len() < 2 * THREADS && !matches!(result, Err(StoreError::Corrupt(_))) {
            idle.push(reader);
        }
        result
    }

    /// Closes the connections that are not in use.
    fn end(&self) {
        let _alone = connect::one_by_one();
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn open(&self, state: Option<ViewState>) -> Result<PooledConnection> {
        let (mut connection, state) = match (&self.readable, state) {
            (Readable::Store { place, .. }, _) => {
                let connection = connect::reader(place.path())?;
                // The connection may have opened another file than the one that is being written.
                place.check()?;
                (connection, None)
            }
            (Readable::View(file), state) => {
                let state = state.map_or_else(|| file.look(), Ok)?;
                let (connection, state) = file.open(state)?;
                (connection, Some(state))
            }
        };
        let limit = Limit::new(Arc::clone(&self.is_closed));
        limit.govern(&mut connection).map_err(Trouble::from)?;
        Ok(PooledConnection { connection, limit, state })
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.end();
    }
}

fn work(jobs: &Mutex<Receiver<ReaderJob>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

/// Number of SQLite's steps between two checks of the limit: some ten microseconds.
const STEPS: i32 = 1_000;

/// No time limit.
const NEVER: u64 = u64::MAX;

/// The limit of one connection's reads, which run one after the other.
#[derive(Clone)]
pub(super) struct Limit {
    is_closed: Arc<AtomicBool>,
    /// In milliseconds since [`start`].
    until: Arc<AtomicU64>,
    /// The time that the read was given, in milliseconds.
    given: Arc<AtomicU64>,
}

impl Limit {
    /// No limit, until this becomes true.
    pub(crate) fn new(is_closed: Arc<AtomicBool>) -> Self {
        Self { is_closed, until: Arc::new(AtomicU64::new(NEVER)), given: Arc::default() }
    }

    /// Makes this connection's statements end with the limit.
    pub(crate) fn govern(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let limit = self.clone();
        connection.progress_handler(STEPS, Some(move || limit.is_over()))
    }

    /// Starts the next read, which has this much time.
    pub(crate) fn begin(&self, time: Option<Duration>) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(NEVER);
        self.given.store(time.map_or(0, millis), Ordering::Relaxed);
        let until = time.map_or(NEVER, |time| millis(start().elapsed() + time));
        self.until.store(until, Ordering::Relaxed);
    }

    /// Fails once the read must end. Between statements, a read checks this itself.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        if !self.is_over() {
            return Ok(());
        }
        let seconds = self.given.load(Ordering::Relaxed).div_ceil(1_000);
        let what = format!("the search took longer than {seconds} s; look for fewer or rarer words");
        Err(StoreError::Unavailable(what))
    }

    fn is_over(&self) -> bool {
        if self.is_closed.load(Ordering::Relaxed) {
            return true;
        }
        let until = self.until.load(Ordering::Relaxed);
        until != NEVER && start().elapsed().as_millis() >= u128::from(until)
    }
}

/// A moment to count from.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;

    /// A statement that never ends.
    const ENDLESS: &str =
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n";

    fn endless(connection: &Connection) -> error::Result<i64> {
        Ok(connection.query_row(ENDLESS, [], |row| row.get(0))?)
    }

    fn pool() -> (tempfile::TempDir, Connection, Pool) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("store.db");
        let writer = connect::writer(&path, Durability::Process).unwrap();
        let pool = Pool::new(
            Readable::Store { place: Arc::new(StoreFile::new(&path)), gate: Arc::default() },
            "test",
        )
        .unwrap();
        (place, writer, pool)
    }

    #[tokio::test]
    async fn a_read_ends_at_its_limit_and_the_next_one_is_free_of_it() {
        let (_place, _writer, pool) = pool();
        let limit = Duration::from_millis(20);
        let error = pool.within(limit, |connection, _| endless(connection)).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("longer than 1 s")), "{error}");
        let count = "SELECT count(*) FROM versions";
        let read = |connection: &Connection| Ok(connection.query_row(count, [], |row| row.get::<_, i64>(0))?);
        assert_eq!(pool.away(read).await, Ok(0));
    }

    #[test]
    fn closing_waits_for_short_reads_so_that_no_log_is_left() {
        let (place, writer, pool) = pool();
        let log = place.path().join("store.db-wal");
        let (begun, goes_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                pool.here(|connection| {
                    connection.query_row("SELECT count(*) FROM versions", [], |row| row.get::<_, i64>(0))?;
                    begun.wait();
                    goes_on.wait();
                    Ok(())
                })
            });
            begun.wait();
            let close = scope.spawn(|| pool.close());
            // Without waiting, it would end before the read does.
            let start = Instant::now();
            while !close.is_finished() && start.elapsed() < Duration::from_millis(200) {
                std::thread::yield_now();
            }
            goes_on.wait();
            read.join().unwrap().unwrap();
            close.join().unwrap();
        });
        assert!(log.exists());
        drop(writer);
        assert!(!log.exists(), "a reading connection is still open");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn closing_ends_a_running_read() {
        let (_place, _writer, pool) = pool();
        let pool = Arc::new(pool);
        let reads: Vec<_> = (0..2 * THREADS)
            .map(|_| {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move { pool.away(endless).await })
            })
            .collect();
        // Begun or not: all of them end.
        tokio::task::yield_now().await;
        tokio::task::block_in_place(|| pool.close());
        for read in reads {
            assert_eq!(read.await.unwrap(), Err(StoreError::Closed));
        }
    }
}
