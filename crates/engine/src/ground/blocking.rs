//! Work that waits for a disk, on a thread that may wait.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::error::{EngineError, Result};

/// Carries out work that may wait for a disk. On a runtime with several threads that is done on the caller's own, whose
/// other tasks go on elsewhere: what the system has in memory is read before another thread would have woken up.
///
/// # Errors
/// `INTERNAL`, which names `what`, for work that panicked on another thread. What panicked is not repeated: it may hold a
/// content.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        return Ok(tokio::task::block_in_place(work));
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| EngineError::Internal(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use context_model::error::ErrorCode;

    use super::*;

    /// On one thread as on several the caller learns what its work gave.
    #[tokio::test]
    async fn a_panic_on_another_thread_is_a_defect_and_tells_no_content() {
        assert_eq!(blocking("a", || 7).await, Ok(7));
        let error = blocking::<()>("a file", || panic!("secret")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Internal);
        assert!(error.to_string().contains("a file") && !error.to_string().contains("secret"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn on_several_threads_the_work_is_done_on_the_callers() {
        let here = std::thread::current().id();
        assert_eq!(blocking("a", || std::thread::current().id()).await, Ok(here));
    }
}
