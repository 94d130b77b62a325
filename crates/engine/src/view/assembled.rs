//! The canonical view of the specification: four sections in fixed order, byte for byte the same for the same state.

use std::ops::Range;
use std::sync::Arc;

use context_model::id::ObjectId;
use serde_json::Value;

/// The four sections, each a part of one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    pub(crate) text: String,
    /// Where the first, second and fourth sections are in the text.
    pub(crate) prompt: Range<usize>,
    pub(crate) pool: Range<usize>,
    pub(crate) active: Range<usize>,
    /// The messages of each turn.
    pub(crate) turns: Vec<Arc<[Value]>>,
    /// The objects of the fourth section, and where their contents are in it.
    pub(crate) blocks: Arc<[(ObjectId, Range<usize>)]>,
}

/// One block of section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// Its content, verbatim.
    pub content: &'a str,
}

impl Assembled {
    /// All four sections as one text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Section 1.
    pub fn system_prompt(&self) -> &str {
        &self.text[self.prompt.clone()]
    }

    /// Section 2: one line per object of the pool, in the order in which they entered it.
    pub fn metadata_pool(&self) -> &str {
        &self.text[self.pool.clone()]
    }

    /// Section 3 as messages, with `toolcall_ref` lines in place of outputs.
    pub fn chat(&self) -> impl Iterator<Item = &Value> {
        self.turns.iter().flat_map(|turn| turn.iter())
    }

    /// Section 4: one block per object of the active set, in the order of activation.
    pub fn active_content(&self) -> &str {
        &self.text[self.active.clone()]
    }

    /// The blocks of section 4 for callers who must not parse: contents are verbatim and could look like the
    /// beginning of a block.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let section = self.active_content();
        self.blocks.iter().map(|(id, place)| Block { id, content: &section[place.clone()] })
    }
}
