//! What the layers above take in of a session.

use std::collections::BTreeMap;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::TxId;

/// A change that the layers above take in.
pub enum SessionChange {
    /// The session has written.
    Wrote(Written),
    /// The catalog has another version of a file, whoever stored it.
    Version {
        /// The file's object.
        file: ObjectId,
        /// The file has changed. `false` for the first version, and for the first bytes of a path that was only seen.
        is_change: bool,
    },
    /// Other clients have written these objects, each listed with its newest transaction.
    Foreign(BTreeMap<ObjectId, TxId>),
    /// Sets and chat were reloaded: on opening, or because another client has the same session open.
    Loaded(Option<Box<Document>>),
}

/// What a transaction of the session did.
#[derive(Default)]
pub struct Written {
    /// Documents that made a version.
    pub documents: Vec<ObjectId>,
    /// What was added to the chat.
    pub chat: Patch,
    /// Objects whose place in a set changed.
    pub touched: Vec<ObjectId>,
    /// Objects that are needed in this user turn.
    pub renewed: Vec<ObjectId>,
    /// A user's turn began.
    pub starts_turn: bool,
}
