//! OpenAI's Responses API.
//!
//! **Cache.** From GPT-5.6 on, a prefix ends where a request ended: at the newest user message or group of outputs. A later
//! request finds one of the latest 20 such ends, so a change is billed from the last request that ended before it ("Prompt
//! caching", platform.openai.com). Older models reuse any common prefix.
//!
//! **Binding.** Newer models check what stands before each item of reasoning. After a change, a shortening or an insertion they
//! drop the items behind it and answer the request ("Preserved reasoning").

use crate::Reach;

/// How far back models from GPT-5.6 on look for a cached prefix.
pub const REACH: Reach = Reach::Endings(20);
