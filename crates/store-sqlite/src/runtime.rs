//! The runtime on whose thread a call runs.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Returns whether this thread may be blocked for a while: on a single-threaded runtime, other tasks could not continue
/// meanwhile.
pub(super) fn may_wait() -> bool {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    runtime.map_or(true, |flavor| flavor == RuntimeFlavor::MultiThread)
}
