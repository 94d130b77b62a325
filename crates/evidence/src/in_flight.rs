//! Reads, writes and answers that a tool has passed in before its result has come.

use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;

use crate::evidence::Evidence;
use crate::known::Way;
use crate::statement::Content;

/// A passed-in entry of a tool.
#[derive(Clone)]
pub(crate) struct InFlight {
    /// Distinguishes it from all others of this process.
    pub number: u64,
    /// The harness's ID of the call, if the harness says.
    pub call: Option<String>,
    /// The path that the tool was given, and where it leads.
    pub way: Way,
    /// The read, write or answer that the tool has passed in.
    pub what: InFlightKind,
    /// The recorded call that it belongs to.
    pub owner: Option<String>,
    /// The evidence in that call's result.
    pub evidence: Option<Evidence>,
}

/// A read, write or answer that a tool has passed in.
#[derive(Clone)]
pub enum InFlightKind {
    /// It has read a file.
    Read {
        /// The content that it has read.
        content: Content,
        /// The text, if it was not stored.
        text: Option<Arc<str>>,
    },
    /// It has written a file.
    Wrote(Wrote),
    /// The answer to it had all new lines of this version.
    Led(Content),
    /// It may make its edit, and its result reports the earlier change.
    Notified {
        /// The text in the result.
        text: String,
        /// The version to which that leads.
        content: Content,
    },
}

/// The state in which a tool left a file.
#[derive(Clone, Debug)]
pub struct Wrote {
    /// The content that it left.
    pub content: Content,
    /// The model's knowledge of the file before; `None` for a file that it did not know.
    pub before: Option<Base>,
    /// The harness's ID of the call, if the harness says.
    pub call: Option<String>,
    /// The path that the tool was given.
    pub path: Arc<str>,
}

/// The model's knowledge of a file.
#[derive(Clone, Debug)]
pub struct Base {
    /// The file that had these bytes.
    pub file: ObjectId,
    /// The bytes.
    pub content: Content,
    /// The version that the request mentions last, in a result or a notice.
    pub told: Option<Digest>,
}

/// All entries of tools whose results have not come yet, oldest first.
#[derive(Default)]
pub struct PassedIn(Vec<InFlight>);

impl PassedIn {
    /// Notes a tool's read, write or answer.
    pub fn add(&mut self, call: Option<&str>, way: Way, what: InFlightKind) {
        let number = self.0.last().map_or(0, |last| last.number + 1);
        let call = call.map(str::to_owned);
        self.0.push(InFlight { number, call, way, what, owner: None, evidence: None });
    }

    /// Notes an entry of a recorded call, with the evidence in the call's result.
    pub(crate) fn add_claimed(&mut self, call: &str, way: Way, what: InFlightKind, evidence: &Evidence) {
        self.add(Some(call), way, what);
        let number = self.0.last().map(|last| last.number);
        number.into_iter().for_each(|number| self.claim(number, call, evidence));
    }

    /// Forgets a tool's latest read of a file: it will not be the tool's result.
    pub fn forget_read(&mut self, call: Option<&str>, file: &ObjectId) {
        let is_it = |one: &InFlight| one.is_read_of(file) && one.call.as_deref() == call;
        if let Some(place) = self.0.iter().rposition(is_it) {
            self.0.remove(place);
        }
    }

    /// Forgets these entries: their results have come.
    pub fn forget(&mut self, numbers: &[u64]) {
        self.0.retain(|one| !numbers.contains(&one.number));
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The entries, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &InFlight> {
        self.0.iter()
    }

    /// Records that an entry belongs to a call, and the evidence of that call's result.
    pub(crate) fn claim(&mut self, number: u64, call_id: &str, evidence: &Evidence) {
        for one in self.0.iter_mut().filter(|one| one.number == number) {
            one.owner = Some(call_id.to_owned());
            one.evidence = Some(evidence.clone());
        }
    }

    /// Returns the model's knowledge before a call whose result reports an earlier change of the file.
    pub(crate) fn notified(&self, call_id: &str, output: &str, way: &Way) -> Option<Base> {
        let entries = self.0.iter().rev().filter(|one| one.may_be_of(call_id, way));
        entries.into_iter().find_map(|one| match &one.what {
            InFlightKind::Notified { text, content } if output.contains(text) => {
                Some(Base { file: one.way.file.clone(), content: *content, told: None })
            }
            _ => None,
        })
    }
}

impl Wrote {
    /// True if a call with this ID has written it.
    pub fn is_of(&self, call_id: &str) -> bool {
        self.call.as_deref() == Some(call_id)
    }
}

impl InFlight {
    /// True if it can be of a call with this ID about this path.
    pub(crate) fn may_be_of(&self, call_id: &str, way: &Way) -> bool {
        let is_free = self.owner.as_deref().is_none_or(|owner| owner == call_id);
        let is_same_call = self.call.as_ref().map_or(self.way.path == way.path, |call| call == call_id);
        is_free && is_same_call
    }

    /// True for a read of a file that no recorded call has claimed.
    pub(crate) fn is_read_of(&self, file: &ObjectId) -> bool {
        self.owner.is_none() && self.way.file == *file && matches!(self.what, InFlightKind::Read { .. })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn way(path: &str, file: &str) -> Way {
        Way { path: path.into(), file: ObjectId::new(file), is_alias: false }
    }

    fn one(call: Option<&str>, owner: Option<&str>, what: InFlightKind) -> InFlight {
        let [call, owner] = [call, owner].map(|id| id.map(str::to_owned));
        InFlight { number: 1, call, way: way("/a", "a"), what, owner, evidence: None }
    }

    fn content() -> Content {
        Content::lost(Digest::of(b"a"))
    }

    /// May it be of the call `c` about the path `/a`, and about another one?
    #[rstest]
    #[case::of_nobody(None, None, [true, false])]
    #[case::of_it(Some("c"), None, [true, true])]
    #[case::of_another(Some("d"), None, [false, false])]
    #[case::claimed_by_it(None, Some("c"), [true, false])]
    #[case::claimed_by_another(None, Some("d"), [false, false])]
    #[case::of_it_and_claimed_by_another(Some("c"), Some("d"), [false, false])]
    fn call_owns_entries_with_its_id_or_else_its_path(
        #[case] call: Option<&str>,
        #[case] owner: Option<&str>,
        #[case] may: [bool; 2],
    ) {
        let one = one(call, owner, InFlightKind::Led(content()));
        assert_eq!(["/a", "/b"].map(|path| one.may_be_of("c", &way(path, "a"))), may);
    }

    #[test]
    fn read_counts_until_a_call_claims_it() {
        let read = || InFlightKind::Read { content: content(), text: None };
        for (one, is_read_of) in [
            (one(None, None, read()), [true, false]),
            (one(None, Some("c"), read()), [false, false]),
            (one(None, None, InFlightKind::Led(content())), [false, false]),
        ] {
            assert_eq!(["a", "b"].map(|file| one.is_read_of(&ObjectId::new(file))), is_read_of);
        }
    }

    #[test]
    fn write_belongs_to_the_named_call() {
        let wrote = |call: Option<&str>| {
            let call = call.map(str::to_owned);
            Wrote { content: content(), before: None, call, path: "/a".into() }
        };
        assert_eq!([Some("c"), Some("d"), None].map(|call| wrote(call).is_of("c")), [true, false, false]);
    }
}
