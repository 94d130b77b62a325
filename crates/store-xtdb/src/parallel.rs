//! Several requests at the same time.

use tokio::task::JoinSet;

use context_store::{Result, StoreError};

/// Number of requests that one call makes at the same time.
const IN_FLIGHT: usize = 16;

/// Runs one request for each item, some at a time, and gives the results in any order.
pub(super) async fn in_parallel<T, R, F>(items: Vec<T>, work: impl Fn(T) -> F) -> Result<Vec<R>>
where
    R: Send + 'static,
    F: Future<Output = Result<R>> + Send + 'static,
{
    let mut items = items.into_iter();
    let mut running = JoinSet::new();
    for item in items.by_ref().take(IN_FLIGHT) {
        running.spawn(work(item));
    }
    let mut results = Vec::new();
    while let Some(done) = running.join_next().await {
        results.push(done.map_err(|e| StoreError::Unavailable(format!("a read was cut off: {e}")))??);
        if let Some(item) = items.next() {
            running.spawn(work(item));
        }
    }
    Ok(results)
}
