//! Files: reading them, deciding what a look means, tracking them, and comparing those of a session with the disk.
//!
//! All waits for a disk here are on threads that may wait. A version goes into a transaction under construction
//! ([`index::prepare`]); only the notes of stamps ([`stamps::StampNote`]) and of drives ([`drives::Drives`]) are written here.

pub mod drives;
pub mod index;
pub mod look;
pub mod many;
pub mod observed;
pub mod pending;
pub mod reading;
pub mod reconcile;
pub mod recorded;
pub mod stamps;
pub mod tracking;

#[cfg(test)]
mod tests {
    use crate::session::client::Client;
    use crate::session::options::Options;
    use context_model::id::SessionId;
    use context_store::memory::MemoryStore;

    /// A client with a memory store for itself, in the folder `/`, with these options changed.
    pub(crate) async fn client_with(change: impl FnOnce(Options) -> Options) -> Client {
        let session = SessionId::new("s").unwrap_or_else(|error| panic!("{error}"));
        let options = Options::new(session, "/", MemoryStore::new());
        let options = change(Options { filesystem_id: Some("disk".into()), ..options });
        Client::new(options).await.unwrap_or_else(|error| panic!("{error}"))
    }
}
