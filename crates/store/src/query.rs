//! Questions about many objects, and their answers.

use std::collections::HashSet;

use context_model::id::ObjectId;
use context_model::object::ObjectType;
use context_model::time::{Timestamp, TxId};

/// The objects that a query selects; fields that are `None` do not restrict it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only objects of this type.
    pub object_type: Option<ObjectType>,
    /// Only files in this filesystem namespace.
    pub filesystem_id: Option<String>,
    /// Only files whose canonical path is this or lies below it, at a segment border.
    pub path_prefix: Option<String>,
    /// Only objects whose latest version was written at this transaction time or later.
    pub since: Option<Timestamp>,
}

/// A full-text query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Words to find; all of them must occur in a version's content.
    pub text: String,
    /// At most this many hits.
    pub limit: usize,
    /// Only objects of this type.
    pub object_type: Option<ObjectType>,
    /// Only these objects, for instance those of a session's index.
    pub within: Option<HashSet<ObjectId>>,
}

impl Search {
    /// True if an object's contents may be hits.
    pub fn covers(&self, id: &ObjectId, object_type: ObjectType) -> bool {
        self.object_type.is_none_or(|wanted| wanted == object_type)
            && self.within.as_ref().is_none_or(|within| within.contains(id))
    }
}

/// A place where a search found its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The object.
    pub id: ObjectId,
    /// The newest version with this content.
    pub tx_id: TxId,
    /// The first line that matches, counted from 1; 0 where the text is damaged.
    pub line: usize,
    /// The text of that line, shortened around the match; of a damaged text [`DAMAGED_TEXT`].
    pub snippet: String,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
}

/// The words in place of a line that can't be read.
pub const DAMAGED_TEXT: &str = "(the text is damaged and can't be read; it may have these words)";

impl Hit {
    /// A version whose text does not match its hash, so that nothing says whether it has the words.
    #[must_use]
    pub fn damaged(id: ObjectId, tx_id: TxId, score: f64) -> Self {
        Self { id, tx_id, line: 0, snippet: DAMAGED_TEXT.into(), score }
    }
}
