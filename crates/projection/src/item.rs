//! One piece of a request in the ledger.

/// One piece of the request that stays or goes as a whole: a tool result, the arguments of a call, a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// Tokens in its present form.
    pub tokens_full: u64,
    /// Tokens of the reference that would replace it in a roll. An item that would not shrink can't be stale.
    pub tokens_ref: u64,
    /// Content blocks of the provider's format that it fills, for providers that look for a cached prefix
    /// only a few blocks back. Most items are 1.
    pub blocks: u32,
    /// It can never be rolled: prose, signed arguments, anything that the host does not let us change.
    pub fixed: bool,
}

impl Item {
    /// An item of one block that a roll may replace.
    pub fn new(tokens_full: u64, tokens_ref: u64) -> Self {
        Self { tokens_full, tokens_ref, blocks: 1, fixed: false }
    }

    /// An item of one block that always stays.
    pub fn fixed(tokens: u64) -> Self {
        Self { tokens_full: tokens, tokens_ref: tokens, blocks: 1, fixed: true }
    }

    /// Tokens that a roll would save at each call.
    pub fn saving(&self) -> u64 {
        if self.fixed { 0 } else { self.tokens_full.saturating_sub(self.tokens_ref) }
    }
}
