//! The thread that writes. Transactions that wait are carried out together and become durable by one commit.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::apply::{self, Newest};
use super::connect::{Trouble, patiently};
use super::copier::Copier;
use super::prepare::Prepared;
use super::search;
use crate::clock::Clock;
use crate::heads::Heads;
use crate::{Receipt, Result, StoreError};

/// What the writer is asked to do.
pub(super) enum Job {
    /// A transaction, answered after its commit.
    Transact(Prepared, Reply<Receipt>),
    /// Anything else that needs the writing connection.
    Call(Box<dyn FnOnce(&mut Writer) + Send>),
}

pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// As many transactions go into one commit at most.
const GROUP: usize = 256;

/// So long without work, and the search index is brought forward: longer than the pauses within a turn's work, for
/// what comes meanwhile has to wait for the portion that is being indexed.
const IDLE: Duration = Duration::from_millis(250);

/// The log is copied back to the database from this many pages on.
const CHECKPOINT: i64 = 1000;

pub(super) struct Writer {
    pub connection: Connection,
    pub clock: Clock,
    pub heads: RefCell<Heads>,
    pub copier: Copier,
    /// Whether versions may wait for the search index.
    pub unindexed: bool,
}

impl Writer {
    /// Works until every sender is gone and everything that was sent is done.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        let mut next = None;
        loop {
            let job = match next.take() {
                Some(job) => job,
                None if self.unindexed => match jobs.recv_timeout(IDLE) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout) => {
                        self.index_some();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                },
                None => match jobs.recv() {
                    Ok(job) => job,
                    Err(_) => break,
                },
            };
            match job {
                Job::Call(call) => call(&mut self),
                Job::Transact(work, reply) => {
                    let mut group = vec![(work, reply)];
                    while group.len() < GROUP && next.is_none() {
                        match jobs.try_recv() {
                            Ok(Job::Transact(work, reply)) => group.push((work, reply)),
                            Ok(call) => next = Some(call),
                            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                        }
                    }
                    self.commit(group);
                }
            }
        }
    }

    /// Runs a write transaction of its own.
    pub fn write<T>(&self, mut work: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
        patiently(|| {
            let begin = TransactionBehavior::Immediate;
            let transaction = rusqlite::Transaction::new_unchecked(&self.connection, begin)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    fn commit(&mut self, group: Vec<(Prepared, Reply<Receipt>)>) {
        self.unindexed = true;
        match self.attempt(&group) {
            Ok(results) => answer(group, results),
            Err(error) if group.len() == 1 => answer(group, vec![Err(error)]),
            Err(_) => {
                // One of them may have been too large for the disk; the others shall not suffer for it.
                for one in group {
                    let one = vec![one];
                    let result = self.attempt(&one).unwrap_or_else(|error| vec![Err(error)]);
                    answer(one, result);
                }
            }
        }
        self.checkpoint();
    }

    fn attempt(&self, group: &[(Prepared, Reply<Receipt>)]) -> Result<Vec<Result<Receipt>>> {
        let results = patiently(|| {
            let begin = TransactionBehavior::Immediate;
            let transaction = rusqlite::Transaction::new_unchecked(&self.connection, begin)?;
            let mut newest = Newest::read(&transaction)?;
            let mut results = Vec::with_capacity(group.len());
            for (work, _) in group {
                results.push(self.one(&transaction, &mut newest, work, group.len() > 1)?);
            }
            transaction.commit()?;
            Ok(results)
        });
        if results.is_err() {
            self.heads.borrow_mut().clear();
        }
        results
    }

    /// One transaction of a group: refused ones leave no trace, failures of the disk end the whole group.
    fn one(
        &self,
        connection: &Connection,
        newest: &mut Newest,
        work: &Prepared,
        grouped: bool,
    ) -> std::result::Result<Result<Receipt>, Trouble> {
        if !grouped {
            return match apply::apply(connection, &self.clock, newest, &mut self.heads.borrow_mut(), work) {
                Err(error @ (StoreError::Conflict(_) | StoreError::Invalid(_))) => Err(Trouble::Store(error)),
                other => Ok(Ok(other?)),
            };
        }
        let before = *newest;
        connection.prepare_cached("SAVEPOINT one")?.execute([])?;
        match apply::apply(connection, &self.clock, newest, &mut self.heads.borrow_mut(), work) {
            Ok(receipt) => {
                connection.prepare_cached("RELEASE one")?.execute([])?;
                Ok(Ok(receipt))
            }
            Err(error @ (StoreError::Conflict(_) | StoreError::Invalid(_) | StoreError::Corrupt(_))) => {
                *newest = before;
                self.heads.borrow_mut().clear();
                connection.execute_batch("ROLLBACK TO one; RELEASE one")?;
                Ok(Err(error))
            }
            Err(error) => Err(Trouble::Store(error)),
        }
    }

    /// Brings the search index forward by one portion. What fails now is tried again before the next search.
    fn index_some(&mut self) {
        match self.write(search::index_portion) {
            Ok(more) => self.unindexed = more,
            Err(error) => {
                tracing::warn!(code = %error.code(), "the search index could not be brought forward");
                self.unindexed = false;
            }
        }
        self.checkpoint();
    }

    /// Brings the search index up to date.
    pub fn index_all(&mut self) -> Result<()> {
        while self.write(search::index_portion)? {}
        self.unindexed = false;
        Ok(())
    }

    /// Brings the search index up to date and compares it with the contents.
    pub fn check_index(&mut self) -> Result<()> {
        self.index_all()?;
        self.write(|connection| {
            let check = "INSERT INTO contents_fts (contents_fts, rank) VALUES ('integrity-check', 1)";
            connection.execute(check, [])?;
            Ok(())
        })
    }

    /// Has a long log copied back into the database.
    fn checkpoint(&mut self) {
        let waiting = || {
            let mut statement = self.connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
            statement.query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
        };
        match waiting() {
            Ok(pages) if pages < CHECKPOINT => {}
            Ok(_) => self.copier.nudge(),
            Err(error) => {
                tracing::warn!(code = ?error.sqlite_error_code(), "the log's length could not be read");
            }
        }
    }

    /// Copies everything back into the database, durable also where commits are not synced.
    pub fn flush(&mut self) -> Result<()> {
        self.index_all()?;
        self.copier.copy()
    }

    /// A value of the `local` table; the first default is kept.
    pub fn local_value(&self, name: &str, default: &str) -> Result<String> {
        self.write(|connection| {
            connection.execute("INSERT OR IGNORE INTO local (name, value) VALUES (?, ?)", [name, default])?;
            Ok(connection.query_row("SELECT value FROM local WHERE name = ?", [name], |row| row.get(0))?)
        })
    }

    /// Sets a value of the `local` table.
    pub fn set_local(&self, name: &str, value: &str) -> Result<()> {
        self.write(|connection| {
            let set = "INSERT INTO local (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
            connection.execute(set, [name, value])?;
            Ok(())
        })
    }
}

fn answer(group: Vec<(Prepared, Reply<Receipt>)>, results: Vec<Result<Receipt>>) {
    for ((_, reply), result) in group.into_iter().zip(results) {
        // A caller that has gone away needs no answer.
        let _ = reply.send(result);
    }
}
