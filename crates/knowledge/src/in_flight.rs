//! What a tool has passed in while its result is still to come.

use std::sync::Arc;

use context_model::id::ObjectId;

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
    Wrote(Content),
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
