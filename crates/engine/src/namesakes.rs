//! The recorded calls that share a call ID.

use std::collections::HashMap;

use crate::session::Session;
use context_model::id::ObjectId;

/// The recorded calls under each call ID that several have, as far as they were requested.
#[derive(Debug, Default)]
pub(crate) struct Namesakes {
    /// By the object ID without a mark: the objects in the order in which they were recorded, and the place behind the one
    /// that was found last. Results come in that order.
    known: HashMap<ObjectId, (Vec<ObjectId>, usize)>,
    /// The number of the session's objects looked at.
    looked: usize,
}

impl Namesakes {
    /// Takes in what the session has recorded since the last time.
    fn look(&mut self, session: &Session) {
        let index = session.sets.index();
        for id in index.iter().skip(self.looked) {
            if session.is_toolcall(id) {
                self.known.entry(id.without_mark()).or_default().0.push(id.clone());
            }
        }
        self.looked = index.len();
    }

    /// The objects of a call ID, from the one behind the last that was found, and then the others.
    pub(crate) fn of(&mut self, call_id: &str, session: &Session) -> Vec<ObjectId> {
        self.look(session);
        let named = self.known.get(&ObjectId::toolcall(call_id).without_mark());
        let (all, next) = named.map_or((&[][..], 0), |(all, next)| (all.as_slice(), *next));
        let is_own = |id: &&ObjectId| id.is_toolcall(call_id);
        all[next..].iter().chain(&all[..next]).filter(is_own).cloned().collect()
    }

    /// The next result under this call ID is probably of the object behind this one.
    pub(crate) fn found(&mut self, object: &ObjectId) {
        if let Some((all, next)) = self.known.get_mut(&object.without_mark())
            && let Some(at) = all.iter().position(|one| one == object)
        {
            *next = at + 1;
        }
    }
}
