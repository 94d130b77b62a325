//! The runtime on whose thread a call runs.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Whether this thread may be kept for a while: the other tasks of a runtime with one thread could not go on meanwhile.
pub(super) fn may_wait() -> bool {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    runtime.map_or(true, |flavor| flavor == RuntimeFlavor::MultiThread)
}
