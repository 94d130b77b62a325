//! What a tool has passed in while its result is still to come.

use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;

use crate::evidence::Evidence;
use crate::known::Way;
use crate::statement::Content;

/// Something that a tool has passed in.
#[derive(Clone)]
pub struct InFlight {
    /// Tells it from all others of this process.
    pub number: u64,
    /// The harness's ID of the call, if the harness says.
    pub call: Option<String>,
    /// The path that the tool was given, and where it leads.
    pub way: Way,
    /// The read, write or answer that the tool has passed in.
    pub what: Taken,
    /// The recorded call that it belongs to.
    pub owner: Option<String>,
    /// The evidence in that call's result.
    pub evidence: Option<Evidence>,
}

/// A read, write or answer that a tool has passed in.
#[derive(Clone)]
pub enum Taken {
    /// It has read a file.
    Read {
        /// The content that it has read.
        content: Content,
        /// The text, if nobody has stored it.
        text: Option<Arc<str>>,
    },
    /// It has written a file.
    Wrote(Wrote),
    /// It was answered with all that is new in this version.
    Led(Content),
    /// It may make its edit, and its result tells what had changed before.
    Told {
        /// The text that the result tells.
        text: String,
        /// The version to which that leads.
        content: Content,
    },
}

/// The state in which a tool has left a file.
#[derive(Clone, Debug)]
pub struct Wrote {
    /// The content that it has left.
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
    /// The version of which the request tells last, in whatever words.
    pub told: Option<Digest>,
}

impl Wrote {
    /// Returns whether a call with this ID has written it.
    pub fn is_of(&self, call_id: &str) -> bool {
        self.call.as_deref() == Some(call_id)
    }
}

impl InFlight {
    /// True if it can be of a call with this ID about this path.
    pub fn may_be_of(&self, call_id: &str, way: &Way) -> bool {
        let is_free = self.owner.as_deref().is_none_or(|owner| owner == call_id);
        let is_its = self.call.as_ref().map_or(self.way.path == way.path, |call| call == call_id);
        is_free && is_its
    }

    /// True for a read of a file that no recorded call has claimed.
    pub fn is_read_of(&self, file: &ObjectId) -> bool {
        self.owner.is_none() && self.way.file == *file && matches!(self.what, Taken::Read { .. })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn way(path: &str, file: &str) -> Way {
        Way { path: path.into(), file: ObjectId::new(file), is_alias: false }
    }

    fn one(call: Option<&str>, owner: Option<&str>, what: Taken) -> InFlight {
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
    fn a_call_owns_what_has_its_id_or_else_its_path(
        #[case] call: Option<&str>,
        #[case] owner: Option<&str>,
        #[case] may: [bool; 2],
    ) {
        let one = one(call, owner, Taken::Led(content()));
        assert_eq!(["/a", "/b"].map(|path| one.may_be_of("c", &way(path, "a"))), may);
    }

    #[test]
    fn a_read_counts_until_a_call_has_claimed_it() {
        let read = || Taken::Read { content: content(), text: None };
        for (one, is_read_of) in [
            (one(None, None, read()), [true, false]),
            (one(None, Some("c"), read()), [false, false]),
            (one(None, None, Taken::Led(content())), [false, false]),
        ] {
            assert_eq!(["a", "b"].map(|file| one.is_read_of(&ObjectId::new(file))), is_read_of);
        }
    }

    #[test]
    fn a_write_is_of_the_call_that_is_named() {
        let wrote = |call: Option<&str>| {
            let call = call.map(str::to_owned);
            Wrote { content: content(), before: None, call, path: "/a".into() }
        };
        assert_eq!([Some("c"), Some("d"), None].map(|call| wrote(call).is_of("c")), [true, false, false]);
    }
}
