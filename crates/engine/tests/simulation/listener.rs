//! A listener to the changes of an engine's files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use context_engine::{Engine, FileEventKind};
use context_model::id::ObjectId;
use context_model::time::TxId;

/// The number of changes that were reported for each file.
#[derive(Default)]
pub struct Listener {
    heard: Arc<Mutex<HashMap<ObjectId, usize>>>,
    /// The files that the session had when it was last looked whether each change was heard, and the store's newest
    /// transaction then.
    pub since: Option<(TxId, Vec<ObjectId>)>,
}

impl Listener {
    pub fn of(engine: &Engine) -> Self {
        let listener = Self::default();
        let heard = Arc::clone(&listener.heard);
        engine.subscribe(move |event| {
            if let (Some(id), FileEventKind::Indexed(_)) = (&event.id, event.kind) {
                *heard.lock().unwrap().entry(id.clone()).or_default() += 1;
            }
        });
        listener
    }

    /// Returns what was heard since the last time.
    pub fn take(&self) -> HashMap<ObjectId, usize> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}
