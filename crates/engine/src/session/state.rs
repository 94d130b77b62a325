//! A session in memory: its sets, the metadata of its objects, the shape of its chat, and the collapse window of the
//! specification.

use std::collections::{BTreeMap, HashMap, HashSet};

use context_model::collapse::{ActiveCall, Window, collapsing, is_control};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, Status};
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::time::TxId;
use context_projection::Objects;

use super::work::Work;
use crate::session::catalog::{Catalog, Meta, MetaKind};
use crate::session::error::{EngineError, Result};

/// The state of a session in memory.
#[derive(Default)]
pub(crate) struct Session {
    /// Its index, pool, active set and pins.
    pub sets: Sets,
    /// The known metadata of the objects that it has encountered.
    pub catalog: Catalog,
    /// The number of turns in the chat.
    pub turns: usize,
    /// The turn in which each tool call of the active set was made or last activated.
    pub stays: HashMap<ObjectId, usize>,
    /// Objects that the model or a user activated. While active, they stay whole in sight.
    pub activated: HashSet<ObjectId>,
    /// Objects that the model or a user released and has not activated again. Objects that the window collapsed are
    /// not included.
    pub dropped: HashSet<ObjectId>,
    /// The transaction of the session document that `sets` equals.
    pub session_tx: Option<TxId>,
    /// The transaction of the chat document that `turns` describes.
    pub chat_tx: Option<TxId>,
    /// This session's newest own transaction: the point to return to.
    pub point: TxId,
    /// The last transaction of other clients that has been taken in.
    pub seen: TxId,
    /// The time of the last fetch of other machines' writes, in the harness's milliseconds.
    pub pulled_ms: i64,
    /// The folder in the session document.
    pub folder: Option<String>,
    /// True if the session document has a `display_paths` field.
    pub has_displays: bool,
    /// True once the instance is closed: every later call fails.
    pub closed: bool,
    /// Files that had bytes, and are gone.
    pub lost: HashSet<ObjectId>,
    /// Files of which others have stored a newer version since they were compared with the disk: on another machine, a later
    /// version may be of an earlier time.
    pub foreign: HashSet<ObjectId>,
    /// The changes that the layers above have not taken in yet, oldest first.
    pub changes: Vec<SessionChange>,
}

impl Session {
    /// Fails once the instance is closed.
    pub(crate) fn open(&self) -> Result<()> {
        if self.closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// The transaction that created the session.
    pub(crate) fn started(&mut self, tx: TxId) {
        self.session_tx = Some(tx);
        self.chat_tx = Some(tx);
        self.point = tx;
    }

    /// Takes in an object's metadata. This is the only way into the catalog, so no new version of a file goes
    /// unnoticed.
    pub(crate) fn meet(&mut self, id: &ObjectId, meta: Meta) {
        let before = self.catalog.get(id).and_then(Meta::current);
        let now = meta.current().filter(|now| before != Some(*now));
        self.catalog.put(id, meta);
        let Some(now) = now else { return };
        // The text may come later than the hash of the same bytes.
        let bytes = before.and_then(|before| before.source_hash);
        let was_lost = self.lost.remove(id);
        if now.source_hash.is_none() && (bytes.is_some() || was_lost) {
            self.lost.insert(id.clone());
        }
        let is_change = bytes != now.source_hash && (bytes.is_some() || was_lost);
        self.changes.push(SessionChange::Version { file: id.clone(), is_change });
    }

    /// True if no read of the file is known to this process.
    pub(crate) fn is_first_read(&self, id: &ObjectId) -> bool {
        let current = self.catalog.get(id).and_then(Meta::current);
        current.is_some_and(|current| current.source_hash.is_none()) && !self.lost.contains(id)
    }

    /// The hash of a file's current bytes; `None` if the file is gone, too large or was never read.
    pub(crate) fn hash_of(&self, id: &ObjectId) -> Option<Digest> {
        match &self.catalog.get(id)?.kind {
            MetaKind::File { source_hash, .. } => *source_hash,
            MetaKind::Toolcall { .. } => None,
        }
    }

    /// True if an object is a tool call.
    pub(crate) fn is_toolcall(&self, id: &ObjectId) -> bool {
        self.catalog.get(id).is_some_and(|meta| matches!(meta.kind, MetaKind::Toolcall { .. }))
    }

    /// Returns the outcome of a call's output.
    pub(crate) fn outcome(&self, id: &ObjectId) -> Option<&str> {
        match self.catalog.get(id).map(|meta| &meta.kind) {
            Some(MetaKind::Toolcall { outcome, .. }) => outcome.as_deref(),
            _ => None,
        }
    }

    /// The short name of an object, or its ID if it has none.
    pub(crate) fn handle(&self, id: &ObjectId) -> String {
        self.catalog.handle(id).unwrap_or(id.as_str()).to_owned()
    }
}

impl Objects for Session {
    fn is_inactive(&self, id: &ObjectId) -> bool {
        !self.sets.active().contains(id) && !self.sets.pinned().contains(id)
    }

    fn is_pinned(&self, id: &ObjectId) -> bool {
        self.sets.pinned().contains(id)
    }

    fn is_released(&self, id: &ObjectId) -> bool {
        self.dropped.contains(id) && self.is_inactive(id)
    }

    fn keeps_whole(&self, id: &ObjectId) -> bool {
        self.is_pinned(id) || (self.activated.contains(id) && self.sets.active().contains(id))
    }

    fn is_toolcall(&self, id: &ObjectId) -> bool {
        self.is_toolcall(id)
    }

    fn outcome(&self, id: &ObjectId) -> Option<&str> {
        self.outcome(id)
    }

    fn has_failed(&self, id: &ObjectId) -> bool {
        let kind = self.catalog.get(id).map(|meta| &meta.kind);
        matches!(kind, Some(MetaKind::Toolcall { status: Status::Fail, .. }))
    }

    fn handle(&self, id: &ObjectId) -> String {
        self.handle(id)
    }

    fn handle_of(&self, id: &ObjectId) -> String {
        self.catalog.handle_of(id)
    }

    fn hash_of(&self, id: &ObjectId) -> Option<Digest> {
        self.hash_of(id)
    }
}

/// A change that the layers above take in.
pub(crate) enum SessionChange {
    /// The session has written.
    Wrote(SessionWrite),
    /// The catalog has another version of a file, from any client.
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

/// The outcome of a transaction of the session.
#[derive(Default)]
pub(crate) struct SessionWrite {
    /// Documents that made a version.
    pub documents: Vec<ObjectId>,
    /// The additions to the chat.
    pub chat: Patch,
    /// Objects whose place in a set changed.
    pub touched: Vec<ObjectId>,
    /// Objects that are needed in this user turn.
    pub renewed: Vec<ObjectId>,
    /// A user's turn began.
    pub starts_turn: bool,
}

impl Session {
    /// Deactivates the calls that the window collapses at this turn, as part of a transaction under construction. Calls that
    /// steer the context take no place in the window: they are active in their own turn.
    pub(crate) fn collapse(&self, window: Window, turn: usize, work: &mut Work) {
        let (mut active, mut over) = (Vec::new(), Vec::new());
        let sets = self.sets.after(&work.change);
        for id in sets.active() {
            let Some(MetaKind::Toolcall { tool, .. }) = self.meta_after(work, id).map(|meta| &meta.kind)
            else {
                continue;
            };
            let stay = ActiveCall { id: id.clone(), turn: self.stay_after(work, id).unwrap_or(0) };
            if !is_control(tool) {
                active.push(stay);
            } else if stay.turn < turn && !sets.is_pinned(id) {
                over.push(stay.id);
            }
        }
        over.extend(collapsing(&active, turn, window, |id| sets.is_pinned(id)));
        for id in over {
            self.sets.deactivate(&id, &mut work.change);
        }
    }

    /// Makes a recorded call part of the current turn, and active.
    pub(crate) fn join_turn(&self, id: &ObjectId, window: Window, work: &mut Work) {
        work.chat.toolcall(id);
        self.sets.activate(id, &mut work.change);
        stay(id, work.chat.current_turn(), work);
        self.collapse(window, work.chat.current_turn(), work);
    }

    /// Activates an object because the model or a user wants it, and notes that with the current turn: it renews the
    /// stay of a tool call.
    pub(crate) fn activate(&self, id: &ObjectId, work: &mut Work) {
        self.sets.activate(id, &mut work.change);
        let turn = work.chat.current_turn();
        let is_new = !self.activated.contains(id) && work.activated.insert(id.clone());
        let stays_on = self.stay_after(work, id) != Some(turn) && self.is_toolcall(id);
        let is_noted = (is_new || stays_on) && work.chat.activation(id);
        if is_noted && stays_on {
            stay(id, turn, work);
        }
        work.renewed.push(id.clone());
    }

    /// The metadata of an object as a transaction will leave them.
    fn meta_after<'a>(&'a self, work: &'a Work, id: &ObjectId) -> Option<&'a Meta> {
        work.ahead.get(id).or_else(|| self.catalog.get(id))
    }

    /// The turn in which a tool call was made or last activated, as a transaction will leave it.
    fn stay_after(&self, work: &Work, id: &ObjectId) -> Option<usize> {
        work.stays.get(id).or_else(|| self.stays.get(id)).copied()
    }
}

/// Notes the turn in which a tool call is made or activated.
fn stay(id: &ObjectId, turn: usize, work: &mut Work) {
    work.stays.insert(id.clone(), turn);
    work.renewed.push(id.clone());
}

#[cfg(test)]
mod tests {
    use context_model::chat::ChatPatch;
    use context_model::object::Status;
    use context_model::time::TxId;
    use rstest::rstest;

    use super::*;
    use crate::session::catalog::Meta;

    /// An activation is noted in the chat if it is the first one, or if it renews the stay of a tool call.
    #[rstest]
    #[case::a_call_of_this_turn("call", Some(2), false, true, Some(2))]
    #[case::again("call", Some(2), true, false, Some(2))]
    #[case::a_call_of_an_earlier_turn("call", Some(0), false, true, Some(2))]
    #[case::again_in_a_later_turn("call", Some(0), true, true, Some(2))]
    #[case::a_call_without_a_stay("call", None, true, true, Some(2))]
    #[case::a_file("file", None, false, true, None)]
    #[case::a_file_again("file", None, true, false, None)]
    fn first_or_renewing_activation_is_noted(
        #[case] id: &str,
        #[case] stay: Option<usize>,
        #[case] was_activated: bool,
        #[case] is_noted: bool,
        #[case] stays: Option<usize>,
    ) {
        let id = ObjectId::new(id);
        let mut session = Session { turns: 3, ..Session::default() };
        let kind = MetaKind::Toolcall { tool: "bash".into(), status: Status::Ok, outcome: None };
        session.catalog.put(&ObjectId::new("call"), Meta { kind, is_null: false, tx: TxId(1) });
        session.stays.extend(stay.map(|turn| (id.clone(), turn)));
        session.activated.extend(was_activated.then(|| id.clone()));
        let mut work = Work { chat: ChatPatch::new(3), ..Work::default() };
        session.activate(&id, &mut work);
        assert!(session.sets.after(&work.change).active().any(|one| *one == id));
        assert_eq!(!work.chat.is_empty(), is_noted);
        assert_eq!(session.stay_after(&work, &id), stays);
        assert!(work.renewed.contains(&id));
        assert_eq!(work.activated.is_empty(), was_activated);
    }

    /// A note needs a turn; without one there is not a stay either.
    #[test]
    fn before_the_first_turn_nothing_is_noted() {
        let (mut session, mut work, id) = (Session::default(), Work::default(), ObjectId::new("call"));
        let kind = MetaKind::Toolcall { tool: "bash".into(), status: Status::Ok, outcome: None };
        session.catalog.put(&id, Meta { kind, is_null: false, tx: TxId(1) });
        session.activate(&id, &mut work);
        assert!(work.chat.is_empty() && work.stays.is_empty());
        assert!(session.is_toolcall(&id) && !session.is_toolcall(&ObjectId::new("file")));
    }
}
