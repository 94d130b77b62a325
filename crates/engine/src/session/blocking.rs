//! Work that waits for a disk, on a thread that may wait.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::error::{EngineError, Result};

/// Runs work that may wait for a disk. On a multi-threaded runtime it runs on the caller's own thread, whose other
/// tasks continue elsewhere: cached data is read before another thread would have woken up.
///
/// # Errors
/// `INTERNAL`, which names `what`, for work that panicked on another thread. The panic message is left out: it may
/// contain a content.
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

    /// With one thread or several, the caller gets the result of its work.
    #[tokio::test]
    async fn panic_on_another_thread_is_a_defect_without_content() {
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
