//! Opening a session, and the state of an open `ContextManager`.

use std::path::Path;
use std::sync::Arc;

use context_engine::{Engine, Options, machine_identity, machine_namespace};
use context_model::id::SessionId;
use context_model::mounts::MountMapping;
use context_platform::MACHINE_ID_FILE;
use context_store::Store;
use napi_derive::napi;
use tracing::Span;

use crate::convert;
use crate::error::{Coded, Outcome};
use crate::life::Held;
use crate::opened::{self, Opened};
use crate::types as js;

/// An open session, and its store.
#[derive(Clone)]
pub(crate) struct Open {
    pub engine: Engine,
    pub opened: Opened,
}

impl Open {
    /// The store that the session is in.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.opened.store
    }
}

impl Held for Open {
    fn closed() -> Coded {
        Coded::closed()
    }

    fn span(&self) -> Span {
        span(self.engine.session_id().as_str())
    }
}

/// The filesystem namespace of this machine's own files, as their `source.filesystemId` names it: SHA-256 of the machine's ID in
/// hexadecimal digits (Linux: of the trimmed `/etc/machine-id`; Windows: of the `MachineGuid`). Null on a machine without an
/// ID, such as macOS: there each store keeps a random one.
#[napi]
#[cfg_attr(test, allow(dead_code, reason = "the addon exports it, and a test build has no addon"))]
pub(crate) fn default_filesystem_id() -> Option<String> {
    machine_identity(MACHINE_ID_FILE)
}

/// Returns the span under which the log files the steps of a session's calls.
pub(crate) fn span(id: &str) -> Span {
    tracing::debug_span!(target: "context", "session", id)
}

/// Opens the store and the session; with the file of an export, after importing it.
pub(crate) async fn start(options: js::OpenOptions, import: Option<String>) -> Outcome<Open> {
    let session = SessionId::new(&options.session_id)?;
    let (opened, options) = match opened::open(options.store.clone()).await? {
        view if view.is_view() => in_memory(view, &session, options).await?,
        opened => (opened, options),
    };
    match open_session(session, options, &opened.store, import).await {
        Ok(engine) => Ok(Open { engine, opened }),
        Err(error) => {
            // The first error is the one to report.
            let _second = opened.store.close().await;
            Err(error)
        }
    }
}

/// A session of a store that is only read, in a store in memory.
async fn in_memory(
    view: Opened,
    session: &SessionId,
    options: js::OpenOptions,
) -> Outcome<(Opened, js::OpenOptions)> {
    let copied = view.session_in_memory(session).await;
    // For a machine without an identity, the store has made one up.
    let filesystem_id = match options.filesystem_id {
        None if machine_identity(MACHINE_ID_FILE).is_none() => {
            machine_namespace(&*view.store, MACHINE_ID_FILE).await.ok()
        }
        given => given,
    };
    let _closed = view.store.close().await;
    Ok((copied?, js::OpenOptions { filesystem_id, ..options }))
}

async fn open_session(
    session: SessionId,
    options: js::OpenOptions,
    store: &Arc<dyn Store>,
    import: Option<String>,
) -> Outcome<Engine> {
    let window = convert::window(options.window)?;
    let stays = convert::stays(options.stay)?;
    let mounts = options.mounts.unwrap_or_default();
    let host = match mounts.iter().all(|mount| mount.filesystem_id.is_some()) {
        true => String::new(),
        false => machine_namespace(&**store, MACHINE_ID_FILE).await?,
    };
    let mounts = mounts.into_iter().map(|mount| MountMapping {
        agent_prefix: mount.agent_prefix,
        canonical_prefix: mount.canonical_prefix,
        filesystem_id: mount.filesystem_id.unwrap_or_else(|| host.clone()),
    });
    let options = Options {
        is_new: options.is_new.unwrap_or(false),
        guesses_cwd: options.guesses_cwd.unwrap_or(false),
        home: options.home,
        system_prompt: options.system_prompt,
        filesystem_id: options.filesystem_id,
        mounts: mounts.collect(),
        window,
        stays,
        watch: options.watch.unwrap_or(true),
        watch_unmapped: options.watch_unmapped,
        detect_devices: options.detect_devices.unwrap_or(false),
        redact: options.redact.unwrap_or(false),
        ..Options::new(session, options.cwd, Arc::clone(store))
    };
    Ok(match import {
        Some(path) => Engine::import(Path::new(&path), options).await?,
        None => Engine::open(options).await?,
    })
}
