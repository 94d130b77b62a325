//! What an acknowledged write survives.

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Also a loss of power: each commit is synced to the disk before it is acknowledged.
    #[default]
    Power,
    /// The death of the process, but not a loss of power: the newest commits may be lost then, all together.
    Process,
}
