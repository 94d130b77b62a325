//! Taking an exported session into a store.

use std::path::Path;

use context_model::id::SessionId;
use context_store::Store;
use context_store::transfer;

use crate::error::Coded;

/// Takes the export of one session into a store and gives the session's ID.
pub async fn session_file(store: &dyn Store, path: &str) -> Result<SessionId, Coded> {
    let mut file = transfer::open(Path::new(path))?;
    let sessions = transfer::sessions(&mut file)?;
    let [session] = &sessions[..] else {
        let count = sessions.len();
        return Err(Coded::invalid(format!(
            "{path} holds {count} sessions, and one is expected; import it as a store"
        )));
    };
    transfer::import(&mut file, store).await?;
    Ok(session.clone())
}
