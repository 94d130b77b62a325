//! What was found out about recorded calls when their results were read again. A host that changes an early message with each call has
//! all of them read again each time: what was found holds as long as the object of the call has no newer version.

use std::collections::{HashMap, HashSet};

use crate::session::Session;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_projection::request::prose::placed_texts;
use serde_json::Value;

/// The findings, by the object of the call. None of them is a text.
#[derive(Default)]
pub(crate) struct Recalled {
    likenesses: HashMap<ObjectId, (Asked, Option<Likeness>)>,
    /// The versions, and the outputs that the record shows as they are.
    whole: HashMap<ObjectId, (Option<TxId>, Digest)>,
    /// The versions without evidence of their own.
    silent: HashMap<ObjectId, TxId>,
    /// The IDs of texts that the chat has. Empty until they were looked for.
    said: HashSet<String>,
}

/// The likeness of a result to a recorded call, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// The tool is the same, and a host may have cut the output after it was recorded.
    Cut,
    /// The same output of the same tool. A host may have changed the arguments.
    Output,
    /// The same call.
    Call,
}

/// A question whose answer depends on nothing else.
#[derive(PartialEq, Eq)]
pub(crate) struct Asked {
    /// The newest version of the object that the session knows.
    tx: Option<TxId>,
    /// The name that tells the result from all others: its call ID, and a digest of its call and output.
    result: ObjectId,
    /// The call ID has no other object.
    is_only: bool,
}

impl Asked {
    /// The question what a result has to do with an object. `marked` is the name of the result with its mark.
    pub(crate) fn of(session: &Session, id: &ObjectId, marked: &ObjectId, is_only: bool) -> Self {
        Self { tx: version_of(session, id), result: marked.clone(), is_only }
    }
}

impl Recalled {
    /// The likeness of a result to a recorded call; `None` if it was not looked for.
    pub(crate) fn likeness(&self, id: &ObjectId, asked: &Asked) -> Option<Option<Likeness>> {
        self.likenesses.get(id).filter(|(before, _)| before == asked).map(|(_, found)| *found)
    }

    pub(crate) fn note_likeness(&mut self, id: &ObjectId, asked: Asked, found: Option<Likeness>) {
        self.likenesses.insert(id.clone(), (asked, found));
    }

    /// True if an output was found to be shown as it was recorded.
    pub(crate) fn is_whole(&self, session: &Session, id: &ObjectId, shown: Digest) -> bool {
        self.whole.get(id) == Some(&(version_of(session, id), shown))
    }

    pub(crate) fn note_whole(&mut self, session: &Session, id: &ObjectId, shown: Digest) {
        self.whole.insert(id.clone(), (version_of(session, id), shown));
    }

    /// True if a version of a call was found to have no evidence.
    pub(crate) fn is_silent(&self, id: &ObjectId, tx: TxId) -> bool {
        self.silent.get(id) == Some(&tx)
    }

    pub(crate) fn note_silent(&mut self, id: &ObjectId, tx: TxId) {
        self.silent.insert(id.clone(), tx);
    }

    /// True if the chat was found to have a text.
    pub(crate) fn has_text(&self, id: &str) -> bool {
        self.said.contains(id)
    }

    /// Notes all texts that the chat has.
    pub(crate) fn note_texts(&mut self, ids: HashSet<String>) {
        self.said = ids;
    }

    /// Notes the texts of a message that is in the chat since now, if the others are known.
    pub(crate) fn add_texts(&mut self, message: &Value) {
        if !self.said.is_empty() {
            self.said.extend(placed_texts(message).0.into_iter().map(|(id, _)| id));
        }
    }

    /// The chat is another one, or others have written to it.
    pub(crate) fn forget_texts(&mut self) {
        self.said.clear();
    }
}

fn version_of(session: &Session, id: &ObjectId) -> Option<TxId> {
    session.catalog.get(id).map(|meta| meta.tx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_counts_for_its_question_alone() {
        let mut recalled = Recalled::default();
        let session = Session::default();
        let [call, result, other] = ["c", "c~1", "c~2"].map(ObjectId::new);
        let asked = |result: &ObjectId, is_only| Asked::of(&session, &call, result, is_only);
        recalled.note_likeness(&call, asked(&result, true), Some(Likeness::Call));
        assert_eq!(recalled.likeness(&call, &asked(&result, true)), Some(Some(Likeness::Call)));
        assert_eq!(recalled.likeness(&call, &asked(&other, true)), None);
        assert_eq!(recalled.likeness(&call, &asked(&result, false)), None);
        let later = Asked { tx: Some(TxId(7)), ..asked(&result, true) };
        assert_eq!(recalled.likeness(&call, &later), None, "the call has a newer version");
        let [one, two] = [b"one", b"two"].map(|text| Digest::of(text));
        recalled.note_whole(&session, &call, one);
        assert!(recalled.is_whole(&session, &call, one) && !recalled.is_whole(&session, &call, two));
        let answer =
            serde_json::json!({ "role": "assistant", "content": [{ "type": "text", "text": "done" }] });
        let (ids, _) = placed_texts(&answer);
        recalled.add_texts(&answer);
        assert!(!recalled.has_text(&ids[0].0), "the others are not known");
        recalled.note_texts(HashSet::from(["other".into()]));
        recalled.add_texts(&answer);
        assert!(recalled.has_text(&ids[0].0) && recalled.has_text("other"));
        recalled.forget_texts();
        assert!(!recalled.has_text("other"));
        recalled.note_silent(&call, TxId(3));
        assert!(recalled.is_silent(&call, TxId(3)) && !recalled.is_silent(&call, TxId(4)));
    }
}
