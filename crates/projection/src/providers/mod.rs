//! What is known of single providers: how they look for a cached prefix, and what they bind.

pub mod anthropic;
pub mod openai;
