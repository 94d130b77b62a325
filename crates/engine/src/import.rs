//! Opening a session from an export.

use std::path::Path;
use std::sync::Arc;

use context_session::error::{EngineError, Result};
use context_session::options::Options;
use context_store::transfer;
use tracing::instrument;

use crate::engine::Engine;

impl Engine {
    /// Imports the export of one session into the store and opens it. If the options name another ID than the file, the
    /// session becomes a copy with that ID: it shares the objects and then develops independently.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the file is not a complete export of one session (nothing was written), `CONFLICT` if the store
    /// has the session with a different history, `IO`, and those of [`Engine::open`].
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn import(path: &Path, options: Options) -> Result<Self> {
        let mut file = transfer::open(path)?;
        let sessions = transfer::sessions(&mut file)?;
        let [original] = &sessions[..] else {
            return Err(EngineError::Invalid(format!(
                "{} holds {} sessions, and one is expected; import it as a store",
                path.display(),
                sessions.len()
            )));
        };
        transfer::import(&mut file, &*options.store).await?;
        let (session, store) = (options.session_id.clone(), Arc::clone(&options.store));
        let engine = Self::open(options).await?;
        if *original != session {
            engine.restore(original, store.latest_tx().await?, None).await?;
        }
        Ok(engine)
    }
}
