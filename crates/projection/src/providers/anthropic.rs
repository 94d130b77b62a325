//! Anthropic's Messages API.
//!
//! **Cache.** A request marks where a prefix ends: after the system part, and after its last block. A later request finds a
//! prefix that ended at most 20 positions before one of its own marks. A run of calls, and a run of results, is one position
//! ("Prompt caching", platform.claude.com).
//!
//! **Binding.** Each block of reasoning is signed together with everything before it and with the block of reasoning before
//! it. Reasoning may leave from the start or from the end of a conversation, and what has left stays out. One block that
//! leaves from the middle invalidates all later ones ("Preserved thinking", "Prefix checks on thinking blocks").

use crate::Reach;

/// How far back the API looks for a cached prefix.
pub const REACH: Reach = Reach::Blocks(20);
