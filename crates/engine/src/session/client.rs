//! The constants of an open session, and one number: the newest transaction that this client knows of.

use std::sync::atomic::{AtomicU64, Ordering};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::time::TxId;
use context_secrets::Redaction;
use context_store::{Receipt, Store, Transaction};

use crate::session::error::{EngineError, Result};
use crate::session::options::Options;
use crate::session::paths::Paths;

/// The moment from which a write survives a power loss. It survives the end of the process at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// Before it is acknowledged.
    Now,
    /// At the next `Engine::settle`.
    WithSettle,
}

/// One client of a store, as every layer knows it: the store, the options, the agent's paths, and the IDs of the session's own objects.
pub(crate) struct Client {
    /// The options that the session was opened with.
    pub options: Options,
    /// The agent's paths, and their places for this process.
    pub paths: Paths,
    /// The session's own object.
    pub session_object: ObjectId,
    /// The session's chat.
    pub chat_id: ObjectId,
    /// The session's system prompt.
    pub prompt_id: ObjectId,
    newest: AtomicU64,
    /// The secrets that are taken out when this client records, if it does so.
    redaction: Option<Redaction>,
}

impl Client {
    /// Checks the options and works out which namespace unmapped paths belong to.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for options that contradict themselves; errors of the store.
    pub(crate) async fn new(options: Options) -> Result<Self> {
        let shares = options.watch_unmapped.unwrap_or(options.mounts.is_empty());
        let paths = Paths::new(
            &options.cwd,
            options.home.clone(),
            namespace(&options, shares).await?,
            &options.mounts,
            shares,
            options.detect_devices,
        )?
        .without(options.store.files());
        let session = &options.session_id;
        Ok(Self {
            session_object: ObjectId::session(session),
            chat_id: ObjectId::chat(session),
            prompt_id: ObjectId::system_prompt(session),
            paths,
            newest: AtomicU64::new(0),
            redaction: options.redact.then(Redaction::default),
            options,
        })
    }

    /// The store that holds the objects.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.options.store
    }

    /// Writes a transaction, without the secrets in it if the options say so.
    pub(crate) async fn write(
        &self,
        mut transaction: Transaction,
        fsync: Fsync,
    ) -> context_store::Result<Receipt> {
        if let Some(redaction) = &self.redaction {
            redaction.take_out(&mut transaction);
        }
        match fsync {
            Fsync::Now => self.store().transact(transaction).await,
            Fsync::WithSettle => self.store().transact_deferred(transaction).await,
        }
    }

    /// Returns the redactor for the records of this client, if the options want one.
    pub(crate) fn redaction(&self) -> Option<&Redaction> {
        self.redaction.as_ref()
    }

    /// The session's ID, as the host names it.
    pub(crate) fn session_id(&self) -> &SessionId {
        &self.options.session_id
    }

    /// Returns the newest transaction that this client has written or read about. Call this before looking at a file: a version
    /// newer than this may be newer than the look.
    pub(crate) fn newest(&self) -> TxId {
        TxId(self.newest.load(Ordering::Acquire))
    }

    /// Notes a transaction that this client has written or read about.
    pub(crate) fn note_newest(&self, tx: TxId) {
        self.newest.fetch_max(tx.0, Ordering::AcqRel);
    }
}

/// The namespace of unmapped paths: the caller's, else the machine's own identity, else (in a sandbox, or on a
/// machine without an identity) a random one, which is stored.
async fn namespace(options: &Options, shares_unmapped: bool) -> Result<String> {
    Ok(match &options.filesystem_id {
        Some(id) => id.clone(),
        None if shares_unmapped => machine_namespace(&*options.store, &options.machine_id_file).await?,
        None => {
            let name = format!("sandbox:{}", options.session_id);
            options.store.local_value(&name, &random_id()?).await?
        }
    })
}

/// The namespace of a machine's own files: [`machine_identity`], or a random one that the store keeps.
///
/// # Errors
/// Errors of the store; `IO` without a source of random bytes.
pub async fn machine_namespace(store: &dyn Store, file: &str) -> Result<String> {
    Ok(match machine_identity(file) {
        Some(id) => id,
        None => store.local_value("machine", &random_id()?).await?,
    })
}

/// SHA-256 of the machine's ID, in hexadecimal digits; `None` if it has none, as in some containers and on macOS. `file` holds
/// the ID, normally [`context_platform::MACHINE_ID_FILE`].
pub fn machine_identity(file: &str) -> Option<String> {
    context_platform::machine_id(file).map(|id| Digest::of(id.as_bytes()).to_string())
}

fn random_id() -> Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| EngineError::Io { path: "the system's random source".into(), reason: e.to_string() })?;
    Ok(Digest::of(&bytes).to_string())
}

#[cfg(test)]
impl Client {
    /// A client with a memory store for itself, in the folder `/`, with these options changed.
    pub(crate) async fn of_test(change: impl FnOnce(Options) -> Options) -> Self {
        let session = SessionId::new("s").unwrap_or_else(|error| panic!("{error}"));
        let options = Options::new(session, "/", context_store::memory::MemoryStore::new());
        let options = change(Options { filesystem_id: Some("disk".into()), ..options });
        Self::new(options).await.unwrap_or_else(|error| panic!("{error}"))
    }
}
