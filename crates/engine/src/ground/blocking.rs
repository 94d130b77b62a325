//! Work that waits for a disk, on a thread that may wait.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::error::{EngineError, Result};

/// Carries out work that may wait for a disk. On a runtime with several threads that is done on the caller's own, whose
/// other tasks go on elsewhere: what the system has in memory is read before another thread would have woken up.
///
/// # Errors
/// `IO`, with `what` as the path, for work that panicked on another thread.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        return Ok(tokio::task::block_in_place(work));
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| EngineError::Io { path: what.to_owned(), reason: error.to_string() })
}
