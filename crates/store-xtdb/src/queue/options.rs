//! How a queued store is set up.

use std::path::PathBuf;

use crate::XtdbOptions;
use context_store_sqlite::Durability;

/// The settings of a queued store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueOptions {
    /// The journal's file. `{file}.progress` and `{file}.lock` are next to it.
    pub journal: PathBuf,
    /// The failures that an acknowledged write survives on this machine.
    pub durability: Durability,
    /// The database.
    pub xtdb: XtdbOptions,
    /// Time that a read may wait for XTDB, in milliseconds, before the journal alone answers.
    pub read_timeout_ms: u64,
    /// Time that [`Store::pull`](context_store::Store::pull) waits for others' writes, in milliseconds. If fetching them takes longer, it continues in the
    /// background, and no later call waits for it.
    pub pull_wait_ms: u64,
    /// Time that [`Store::flush`](context_store::Store::flush) and [`Store::close`](context_store::Store::close) wait for the queue, in milliseconds.
    pub close_timeout_ms: u64,
    /// Time that a node that lacks transactions may stand still before its database counts as one that was restored,
    /// emptied or replaced, in milliseconds.
    pub lag_ms: u64,
}

impl QueueOptions {
    /// The defaults: reads wait for at most 2 seconds, turns for half a second, closing for 10 seconds, and a node without progress has 3.
    #[must_use]
    pub fn new(journal: impl Into<PathBuf>, xtdb: XtdbOptions) -> Self {
        Self {
            journal: journal.into(),
            durability: Durability::default(),
            xtdb,
            read_timeout_ms: 2_000,
            pull_wait_ms: 500,
            close_timeout_ms: 10_000,
            lag_ms: 3_000,
        }
    }
}
