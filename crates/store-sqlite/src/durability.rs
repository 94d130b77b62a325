//! What an acknowledged write survives.

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Even a power loss: each commit is synced to the disk before it is acknowledged.
    #[default]
    Power,
    /// The end of the process, but not a power loss. That may lose the newest commits, without leaving gaps.
    Process,
}
