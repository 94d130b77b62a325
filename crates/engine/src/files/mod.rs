//! Files: reading them, deciding what a look means, tracking them, and comparing those of a session with the disk.
//!
//! All waits for a disk here are on threads that may wait. A version goes into a transaction under construction
//! ([`index::prepare`]); only the notes of stamps ([`stamps::StampNote`]) and of drives ([`drives::Drives`]) are written here.

pub(crate) mod drives;
pub(crate) mod index;
pub(crate) mod look;
pub(crate) mod many;
pub(crate) mod observed;
pub(crate) mod pending;
pub(crate) mod reading;
pub(crate) mod reconcile;
pub(crate) mod recorded;
pub(crate) mod stamps;
pub(crate) mod tracking;

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
