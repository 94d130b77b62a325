//! What a decision about a request asks of the session.

use context_model::hash::Digest;
use context_model::id::ObjectId;

/// The session's objects, as far as a request depends on them.
pub trait Objects {
    /// Returns whether an object is neither active nor pinned.
    fn is_inactive(&self, id: &ObjectId) -> bool;

    /// Returns whether an object is pinned.
    fn is_pinned(&self, id: &ObjectId) -> bool;

    /// Returns whether the model or a person released an object, and nobody has activated it again.
    fn is_released(&self, id: &ObjectId) -> bool;

    /// Returns whether an object's whole text must stay in sight where it is: it is pinned, or somebody activated it.
    fn keeps_whole(&self, id: &ObjectId) -> bool;

    /// Returns whether an object is a tool call.
    fn is_toolcall(&self, id: &ObjectId) -> bool;

    /// Returns what a call's output came to.
    fn outcome(&self, id: &ObjectId) -> Option<&str>;

    /// Returns whether a call has failed.
    fn has_failed(&self, id: &ObjectId) -> bool;

    /// The short name of an object, or its ID if it has none.
    fn handle(&self, id: &ObjectId) -> String;

    /// The short name of an object, even of one that is not known yet.
    fn handle_of(&self, id: &ObjectId) -> String;

    /// The hash of a file's current bytes; `None` if the file is gone, too large or was never read.
    fn hash_of(&self, id: &ObjectId) -> Option<Digest>;
}
