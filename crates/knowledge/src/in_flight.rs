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
    /// What the tool has passed in.
    pub what: Taken,
    /// The recorded call that it belongs to.
    pub owner: Option<String>,
    /// What that call's result says.
    pub says: Option<Evidence>,
}

/// What a tool has passed in.
#[derive(Clone)]
pub enum Taken {
    /// It has read a file.
    Read {
        /// What it has read.
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
        /// What the result tells.
        text: String,
        /// The version to which that leads.
        content: Content,
    },
}

/// What a tool has left in a file.
#[derive(Clone, Debug)]
pub struct Wrote {
    /// What it has left.
    pub content: Content,
    /// What the model knew of the file before; `None` of a file that it did not know.
    pub before: Option<Base>,
    /// The harness's ID of the call, if the harness says.
    pub call: Option<String>,
    /// The path that the tool was given.
    pub path: Arc<str>,
}

/// What the model knows of a file.
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
