//! Opening: a session is started, or resumed and reconciled if the store knows it, or opened from an export.

use std::path::Path;
use std::sync::Arc;

use crate::session::client::{Client, Fsync};
use crate::session::commit::commit;
use crate::session::error::{EngineError, Result};
use crate::session::options::Options;
use crate::session::refresh;
use context_model::chat::begun;
use context_model::object::Document;
use context_model::session::{self, FOLDER};
use context_projection::request::segments::Segments;
use context_store::{StoreError, Transaction, Write, transfer};
use serde_json::json;
use tracing::instrument;

use crate::engine::{Engine, Inner, State};
use crate::events::Receiver;

impl Engine {
    /// Starts a session, or resumes and reconciles it if the store knows it.
    ///
    /// Must be called within a tokio runtime whose timers are enabled.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for options that contradict themselves; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn open(options: Options) -> Result<Self> {
        options.store.pull().await?;
        let prompt = options.system_prompt.clone();
        let inner = Arc::new(Inner::new(Client::new(options).await?));
        inner.load_or_start().await?;
        inner.tracking.start(&inner.client, Receiver::new(&inner));
        let engine = Self { inner };
        engine.inner.reconcile(None).await?;
        if let Some(prompt) = prompt {
            engine.set_system_prompt(&prompt).await?;
        }
        Ok(engine)
    }
}

impl Inner {
    async fn load_or_start(&self) -> Result<()> {
        let mut state = self.lock().await?;
        state.request.segments = Segments::new(self.client.options.stays);
        // Before the rest, so that another client's writes meanwhile count as changes.
        state.session.seen = self.store().latest_tx().await?;
        self.client.note_newest(state.session.seen);
        let is_known = match refresh::load(&self.client, &mut state.session).await {
            // Elsewhere there may be a session of this name, unless the host has just made the name.
            Err(EngineError::Store(StoreError::Unavailable(_))) if self.client.options.is_new => false,
            loaded => loaded?,
        };
        if !is_known {
            self.start(&mut state).await?;
        } else {
            if let Err(error) = self.store().set_note(&self.opened(), &now()).await {
                tracing::warn!(code = %error.code(), "the store could not note that the session was opened");
            }
            if let Err(error) = self.note_folder(&mut state).await {
                tracing::warn!(code = %error.code(), "the store could not note where the session works");
            }
        }
        self.apply(&mut state);
        Ok(())
    }

    /// The name of the note that says when this session was opened: a store's owner removes sessions that were not
    /// opened.
    fn opened(&self) -> String {
        format!("opened:{}", self.client.session_id())
    }

    /// Records the folder of a session that continues in another one, or that an earlier version of this library has begun.
    async fn note_folder(&self, state: &mut State) -> Result<()> {
        let Some(folder) = self.known_folder().filter(|folder| state.session.folder.as_ref() != Some(folder))
        else {
            return Ok(());
        };
        commit(&self.client, &mut state.session, Fsync::WithSettle, |_, work| {
            work.session.put(&[FOLDER], json!(folder));
            Ok(())
        })
        .await?;
        state.session.folder = Some(folder);
        Ok(())
    }

    /// The folder that the session works in, unless the host only guesses it.
    fn known_folder(&self) -> Option<String> {
        (!self.client.options.guesses_cwd).then(|| self.client.paths.working_folder())
    }

    async fn start(&self, state: &mut State) -> Result<()> {
        let session = self.client.session_id();
        let folder = self.known_folder();
        let documents = [
            begun(session)?,
            Document::system_prompt(
                session,
                self.client.options.system_prompt.as_deref().unwrap_or_default(),
            ),
            session::begun(session, folder.as_deref())?,
        ];
        let transaction = Transaction {
            writes: documents.into_iter().map(Write::put).collect(),
            expected: vec![(self.client.session_object.clone(), None)],
        };
        match self.client.write(transaction, Fsync::Now).await {
            Ok(receipt) => {
                state.session.started(receipt.tx_id);
                state.session.folder = folder;
                self.client.note_newest(receipt.tx_id);
                Ok(())
            }
            // Another process started the same session at the same moment.
            Err(StoreError::Conflict(_)) => {
                refresh::load(&self.client, &mut state.session).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Milliseconds since 1970.
fn now() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_millis().to_string()
}

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
