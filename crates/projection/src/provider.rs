//! Facts about single providers: the way in which they look for a cached prefix, and what they bind.
//!
//! **Anthropic's Messages API.** A request marks where a prefix ends: after the system part, and after its last block. A later
//! request finds a prefix that ended at most 20 positions before one of that request's marks. A run of calls, and a run of
//! results, is one position ("Prompt caching", platform.claude.com). Each block of reasoning is signed together with everything
//! before it and with the block of reasoning before it. Reasoning may leave from the start or from the end of a conversation,
//! and stays out once it has left. One block that leaves from the middle invalidates all later ones ("Preserved thinking",
//! "Prefix checks on thinking blocks").
//!
//! **OpenAI's Responses API.** From GPT-5.6 on, a prefix ends where a request ended: at the newest user message or group of
//! outputs. A later request finds one of the latest 20 such ends, so a change is billed from the last request that ended before
//! it ("Prompt caching", platform.openai.com). Older models reuse any common prefix. Newer models check what stands before each
//! item of reasoning. After a change, a shortening or an insertion they drop the items behind it and answer the request
//! ("Preserved reasoning").

use serde::{Deserialize, Serialize};

/// The place in a changed request where a provider finds a prefix that it has cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Everything up to the first change.
    #[default]
    AnyPrefix,
    /// At most this many positions before the end of the request, where an earlier request ended ([`Reach::ANTHROPIC`]). The
    /// system part has a separate mark.
    Blocks(u32),
    /// One of this many latest ends of earlier requests ([`Reach::OPENAI`]). The system part has no separate mark.
    Endings(u32),
}

impl Reach {
    /// The distance within which Anthropic's API looks for a cached prefix.
    pub const ANTHROPIC: Self = Self::Blocks(20);
    /// The distance within which OpenAI's models from GPT-5.6 on look.
    pub const OPENAI: Self = Self::Endings(20);

    /// The system part is found in the cache even if nothing after it is.
    pub fn marks_system(self) -> bool {
        !matches!(self, Self::Endings(_))
    }
}

/// The consequence for a model's reasoning once anything before it in the request differs from what the model saw when
/// it wrote that reasoning. It is a property of the model in use and of the account, like its prices.
///
/// Sources: Anthropic, "Preserved thinking" and "Prefix checks on thinking blocks"; OpenAI, "Preserved reasoning".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// Nothing: reasoning is not checked against what comes before it.
    #[default]
    None,
    /// The provider notices the difference, but the model still reads the reasoning. Only the reasoning of the open tool
    /// round must stay as it came.
    Keeps,
    /// The provider drops that reasoning and all later reasoning, and answers the request.
    Drops,
    /// The provider refuses the request with a 400, and refuses each repetition of it.
    Refuses,
}

impl Binding {
    /// All values with the names that hosts give them.
    pub const NAMED: [(&'static str, Self); 4] =
        [("none", Self::None), ("keeps", Self::Keeps), ("drops", Self::Drops), ("refuses", Self::Refuses)];

    /// The binding of this name: `none`, `keeps`, `drops` or `refuses`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, binding)| *binding)
    }

    /// A changed prefix costs the model its reasoning, or the request.
    pub fn is_strict(self) -> bool {
        matches!(self, Self::Drops | Self::Refuses)
    }
}
