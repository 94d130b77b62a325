//! Directories that survive a power failure, and one flush for many waiting writers.

use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use context_platform::sync_directory;

/// Flushes one directory for several threads: a flush that starts after a thread has asked serves it, so
/// threads that ask while one is under way share the next.
#[derive(Debug, Default)]
pub(crate) struct SharedFlush {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Flushes asked for so far.
    asked: u64,
    /// All requests up to this one have been served.
    served: u64,
    running: bool,
}

impl SharedFlush {
    /// Returns when a flush that began after this call has succeeded. If this thread's own flush fails, the
    /// error is its own; the others try again themselves.
    pub(crate) fn run(&self, flush: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        state.asked += 1;
        let mine = state.asked;
        while state.served < mine {
            if state.running {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.running = true;
            let serves = state.asked;
            drop(state);
            let outcome = flush();
            state = self.lock();
            state.running = false;
            self.changed.notify_all();
            outcome?;
            state.served = serves;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a directory and its missing parents, for the owner only. With `durable`, each new entry is flushed.
pub(crate) fn create_directory(path: &Path, durable: bool) -> io::Result<()> {
    let mut missing: Vec<&Path> = path.ancestors().take_while(|p| !p.exists()).collect();
    context_platform::private_directory(path)?;
    while let Some(created) = missing.pop() {
        if let Some(parent) = created.parent().filter(|_| durable) {
            sync_directory(parent)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_caller_is_served_by_a_flush_that_began_after_it_asked() {
        let (shared, written) = (SharedFlush::default(), AtomicU64::new(0));
        let durable = AtomicU64::new(0);
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..200 {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        let flush = || {
                            let seen = written.load(Ordering::SeqCst);
                            std::thread::yield_now();
                            durable.fetch_max(seen, Ordering::SeqCst);
                            Ok(())
                        };
                        shared.run(flush).expect("flush");
                        assert!(durable.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
    }

    #[test]
    fn all_who_ask_while_a_flush_runs_share_the_next() {
        let (shared, flushes) = (SharedFlush::default(), AtomicU64::new(0));
        let first = || {
            // The first flush ends only when all eight have asked.
            while flushes.load(Ordering::SeqCst) == 0 && shared.lock().asked < 8 {
                std::thread::yield_now();
            }
            flushes.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| shared.run(first).expect("flush"));
            }
        });
        assert_eq!(flushes.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_failed_flush_serves_nobody() {
        let shared = SharedFlush::default();
        let failed = shared.run(|| Err(io::Error::other("refused")));
        assert_eq!(failed.expect_err("refused").to_string(), "refused");
        let calls = AtomicU64::new(0);
        let flush = || {
            calls.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        shared.run(flush).expect("flush");
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn missing_parents_are_created() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a/b/c");
        create_directory(&path, true).expect("created");
        create_directory(&path, true).expect("it is there already");
        assert!(path.is_dir());
    }
}
