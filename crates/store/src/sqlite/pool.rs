//! The connections that read, each used by one caller at a time, and the threads for long reads.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connect;
use super::error::is_held;
use crate::{Result, StoreError};

/// Threads for long reads.
const THREADS: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// Reading connections and threads; the connections are opened when they are first needed.
pub(super) struct Pool {
    idle: Arc<Idle>,
    jobs: RwLock<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Idle {
    path: PathBuf,
    connections: Mutex<Vec<Connection>>,
}

impl Pool {
    pub fn new(path: PathBuf) -> Result<Self> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let receiver = Arc::clone(&receiver);
            let spawned =
                std::thread::Builder::new().name("store-read".into()).spawn(move || work(&receiver));
            threads.push(
                spawned.map_err(|e| StoreError::Unavailable(format!("no thread could be started: {e}")))?,
            );
        }
        Ok(Self {
            idle: Arc::new(Idle { path, connections: Mutex::default() }),
            jobs: RwLock::new(Some(sender)),
            threads: Mutex::new(threads),
        })
    }

    /// A short read, on the caller's own thread: a row that is in memory is there sooner than another thread
    /// would have woken up.
    pub fn here<T>(&self, read: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        if self.jobs.read().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(StoreError::Closed);
        }
        self.idle.with(read)
    }

    /// A read that may take long, on a thread of the pool.
    pub async fn away<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let idle = Arc::clone(&self.idle);
        {
            let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
            let job: Job = Box::new(move || {
                let _ = reply.send(idle.with(read));
            });
            jobs.as_ref().ok_or(StoreError::Closed)?.send(job).map_err(|_| StoreError::Closed)?;
        }
        answer
            .await
            .map_err(|_| StoreError::Unavailable("a read ended without an answer; repeat it".into()))?
    }

    /// Lets the threads finish and closes the connections.
    pub fn close(&self) {
        drop(self.jobs.write().unwrap_or_else(PoisonError::into_inner).take());
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
        self.idle.connections.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Idle {
    fn with<T>(&self, read: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        let pop = || self.connections.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = pop().map_or_else(|| connect::reader(&self.path), Ok)?;
        let start = Instant::now();
        let mut result = read(&connection);
        while result.as_ref().is_err_and(is_held) && start.elapsed() < connect::PATIENCE {
            result = read(&connection);
        }
        let mut idle = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that saw damage keeps nothing of it, so that a repaired file is read anew.
        if idle.len() < 2 * THREADS && !matches!(result, Err(StoreError::Corrupt(_))) {
            idle.push(connection);
        }
        result
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}
