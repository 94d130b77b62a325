//! How far back a provider finds a cached prefix.

/// Where in a changed request a provider finds a prefix that it has cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Everything up to the first change.
    #[default]
    AnyPrefix,
    /// At most this many positions before the end of the request, where an earlier request ended
    /// ([`crate::providers::anthropic`]). The system part has a mark of its own.
    Blocks(u32),
    /// One of this many latest ends of earlier requests ([`crate::providers::openai`]). The system part has no mark of its own.
    Endings(u32),
}

impl Reach {
    /// The system part is found in the cache even if nothing after it is.
    pub fn marks_system(self) -> bool {
        !matches!(self, Self::Endings(_))
    }
}
