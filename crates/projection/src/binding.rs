//! What a provider does with reasoning after something before it has changed.

use serde::{Deserialize, Serialize};

/// What happens to a model's reasoning once anything before it in the request differs from what the model saw when it
/// wrote that reasoning. It is a property of the model in use and of the account, like its prices.
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
